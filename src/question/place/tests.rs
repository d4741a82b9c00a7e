use std::collections::BTreeSet;

use super::*;

fn text(raw: &str) -> Result<Value, Invalid> {
    read(&Raw::Text(raw), 2, 120)
}

fn body(json: &Json) -> Result<Value, Invalid> {
    read(&Raw::Json(json), 2, 120)
}

#[test]
fn a_place_is_one_however_it_is_written() {
    let spot = json!({"location": {"latLng": {"latitude": 45.5, "longitude": -73.9}}});
    let table: [(&[&str], &[Json], Json); 3] = [
        (
            &["12 Main St", " 12  MAIN st"],
            &[json!({"address": "12 Main St"}), json!("12 main st"), json!({"address": "12 main st", "via": false})],
            json!({"address": "12 Main St"}),
        ),
        (
            &["place_id:ChIJ-8_Q2", " place_id: ChIJ-8_Q2"],
            &[json!({"placeId": "ChIJ-8_Q2"}), json!({"place_id": "ChIJ-8_Q2"})],
            json!({"placeId": "ChIJ-8_Q2"}),
        ),
        (
            &["45.5,-73.9", "45.50, -73.900", "４５.５,-73.9"],
            &[spot.clone(), json!({"location": {"lat_lng": {"lat": "45.5", "lng": -73.90}}})],
            spot,
        ),
    ];
    for (texts, bodies, right) in table {
        let values: Vec<_> = texts.iter().map(|t| text(t).unwrap()).chain(bodies.iter().map(|b| body(b).unwrap())).collect();
        assert_eq!(values.iter().map(|v| &v.key).collect::<BTreeSet<_>>().len(), 1, "{texts:?}");
        assert_eq!(values[0].asked.json(), right);
        assert_eq!(values[0].asked.text(), texts[0]);
    }
    assert_eq!(read(&Raw::Pair("45.5", "-73.9"), 2, 120), text("45.5,-73.9"));
}

#[test]
fn n_05_a_modifier_makes_another_question() {
    let point = |extra: Json| {
        let mut all = json!({"location": {"latLng": {"latitude": 1, "longitude": 2}}});
        all.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
        body(&all).unwrap()
    };
    let all = [
        point(json!({})),
        point(json!({"via": true})),
        point(json!({"vehicleStopover": true})),
        point(json!({"sideOfRoad": true})),
        point(json!({"via": true, "sideOfRoad": true})),
        point(json!({"location": {"latLng": {"latitude": 1, "longitude": 2}, "heading": 0}})),
        point(json!({"location": {"latLng": {"latitude": 1, "longitude": 2}, "heading": 90}})),
        body(&json!({"address": "1,2"})).unwrap(),
        body(&json!({"placeId": "12"})).unwrap(),
        body(&json!({"navigationPointToken": "12"})).unwrap(),
        body(&json!({"address": "via;location=1,2"})).unwrap(),
    ];
    assert_eq!(all.iter().map(|v| &v.key).collect::<BTreeSet<_>>().len(), all.len());
    assert_eq!(point(json!({"vehicle_stopover": true, "side_of_road": false})), all[2]);
    let right = json!({"location": {"latLng": {"latitude": 1, "longitude": 2}, "heading": 90}});
    assert_eq!(all[6].asked.json(), right);
    assert_eq!(body(&json!({"location": {"latLng": {"latitude": 1, "longitude": 2}, "heading": "90.0"}})).unwrap(), all[6]);
}

#[test]
fn what_is_no_waypoint_is_refused() {
    for raw in ["", "x", "-,-", "91,0", "45.5,200", "place_id:", "place_id:a b", "place_id:ä", "place_id:a/b"] {
        assert!(text(raw).is_err(), "{raw}");
    }
    let bodies = [
        json!({}),
        json!({"via": true}),
        json!({"address": "12 Main St", "placeId": "x"}),
        json!({"placeId": "x", "place_id": "x"}),
        json!({"address": 5}),
        json!({"address": "12 Main St", "colour": 1}),
        json!({"address": "12 Main St", "via": 1}),
        json!({"address": "12 Main St", "sideOfRoad": true, "side_of_road": true}),
        json!({"location": {"latLng": {"latitude": 1}}}),
        json!({"location": {"latLng": {"latitude": 1, "longitude": 2}, "heading": 361}}),
        json!({"location": {"latLng": {"latitude": 1, "longitude": 2}, "speed": 1}}),
        json!({"location": {"heading": 1}}),
        json!({"location": [1, 2]}),
        json!([1, 2]),
        json!(null),
    ];
    for json in &bodies {
        assert!(body(json).is_err(), "{json}");
    }
}
