# The targets a person types. What a target needs beyond Rust and a C compiler is installed when missing, by scripts/.
.PHONY: demo test lint docs bench
.DEFAULT_GOAL := demo

demo:  ## sandbox providers and gateway in one process, no network, no key
	cargo run --release -- demo

test:  ## everything, unmodified client SDKs included
	scripts/test

lint:  ## formatting, clippy, licences and sources of every dependency
	scripts/lint

docs:  ## our own pages in target/doc; a broken link is an error
	RUSTDOCFLAGS="-D warnings -D rustdoc::broken_intra_doc_links" cargo doc --no-deps --document-private-items

bench:  ## a hit beside bare hyper and nginx, and what a shared store costs, see benches/*/main.rs
	command -v redis-server >/dev/null || scripts/apt redis-server
	cargo bench --bench hit --bench store
