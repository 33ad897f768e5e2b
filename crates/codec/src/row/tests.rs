use super::*;

fn text_rows() -> (Vec<u8>, Vec<u32>) {
    let words = ["carefully", "final", "deposits", "sleep", "furiously", "TRUCK", "DELIVER IN PERSON", "1996-03-1", "quick"];
    let (mut bytes, mut ends) = (Vec::new(), Vec::new());
    let mut state = 1_u64;
    for number in 0..2000 {
        bytes.extend_from_slice(format!("{number}|").as_bytes());
        for _ in 0..number % 9 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            bytes.extend_from_slice(words[(state >> 33) as usize % words.len()].as_bytes());
            bytes.push(b' ');
        }
        ends.push(bytes.len() as u32);
    }
    (bytes, ends)
}

#[test]
fn rows_come_back() {
    let (bytes, ends) = text_rows();
    let sample = RowSample::new(&bytes, &ends).unwrap();
    let dictionary = train(&sample, &TrainOptions::default());
    let encoder = Encoder::new(&dictionary);
    let mut total = 0;
    for row in sample.rows() {
        let mut compressed = Vec::new();
        match encoder.encode(row, &mut compressed) {
            Some(len) => {
                assert_eq!(len, compressed.len());
                assert_eq!(encoder.encoded_len(row), Some(len));
                assert!(len < row.len());
                let mut out = vec![7];
                assert_eq!(dictionary.decode(&compressed, &mut out, row.len()), Ok(row.len()));
                assert_eq!(&out[1..], row);
                assert!(dictionary.decode(&compressed, &mut out, row.len() - 1).is_err());
                total += len;
            }
            None => total += row.len(),
        }
    }
    assert!(total * 4 < bytes.len(), "{total} of {}", bytes.len());
}
