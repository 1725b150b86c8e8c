//! What a review reads of the work that it is about.

use ropewalk_schemas::specification::{Document, Requirement, Revision};
use ropewalk_schemas::{RequirementId, document};

use crate::house::{build, noon};
use crate::workshop::{FINDINGS, Workshop, landed};

#[tokio::test]
async fn a_review_reads_the_tests_first_with_what_shows_each_requirement_and_never_the_idea() {
    let more = [
        ("ideas/habits/README.md", "a secret of the idea\n"),
        ("tests/habits.rs", "assert!(kept);\n"),
    ];
    for (sees, answered) in [
        ("+assert!(kept);\\ndiff --git a/database/1.sql", true),
        ("shown by: two rows with one name are refused", true),
        ("shown by: a thousand rows in a second", true),
        ("a secret of the idea", false),
    ] {
        let script = FINDINGS.replace("  reply:", &format!("  contains: \"{sees}\"\n  reply:"));
        let workshop = Workshop::open_with(&script, &more).await;
        workshop.built(&[landed(1)]).await;
        let of = build(1);
        let requirement = |id, text: &str, acceptance: &str| Requirement {
            id: RequirementId::parse(id).unwrap(),
            text: text.to_owned(),
            priority: "must".to_owned(),
            acceptance: acceptance.to_owned(),
            source: String::new(),
        };
        let unique = "two rows with one name are refused";
        let quick = "a thousand rows in a second";
        let document = Document {
            requirements: vec![requirement("FR-1", "names are unique", unique)],
            quality: vec![requirement("NFR-1", "it is quick", quick)],
            ..Document::default()
        };
        let revision = Revision {
            spec: of.spec,
            number: of.revision,
            hash: document::hash(&document, &[]),
            document,
            tasks: Vec::new(),
            validation: Vec::new(),
            answers: Vec::new(),
            at: noon(),
        };
        workshop.house.put(&revision).await;
        workshop.review().await;
        let review = workshop.only_review().await;
        let by_rules = |note: &String| note.contains("by rules alone");
        assert_ne!(review.notes.iter().any(by_rules), answered, "{sees}");
    }
}
