//! Somebody who looks at pages, as a browser does.

use crate::world::{Answer, ServerWorld, answered};

/// What browsers ask for.
pub(crate) const HTML: &str = "text/html,application/xhtml+xml";

/// Somebody who is logged in by the link.
pub(crate) struct Browser<'a> {
    world: &'a ServerWorld,
    cookie: String,
}

impl<'a> Browser<'a> {
    pub(crate) async fn new(world: &'a ServerWorld) -> Self {
        let entered = answered(world.client.get(&world.link).header("Accept", HTML)).await;
        assert_eq!(entered.status, 200, "{}", entered.text);
        assert!(
            entered.text.contains("logged in as ada"),
            "{}",
            entered.text
        );
        let set = entered.headers["set-cookie"].to_str().unwrap();
        let cookie = set.split(';').next().unwrap().to_owned();
        Self { world, cookie }
    }

    pub(crate) async fn read(&self, path: &str) -> Answer {
        let asked = self.world.bare("GET", path).header("Accept", HTML);
        answered(asked.header("Cookie", &self.cookie)).await
    }

    /// Sends a form with whatever proof; what is answered is not followed.
    pub(crate) async fn send(
        &self,
        path: &str,
        fields: &[(&str, &str)],
        proof: Option<&str>,
    ) -> Answer {
        let mut form = url::form_urlencoded::Serializer::new(String::new());
        form.extend_pairs(fields);
        form.extend_pairs(proof.map(|proof| ("csrf", proof)));
        let asked = self.world.bare("POST", path).header("Accept", HTML);
        let asked = asked
            .header("Cookie", &self.cookie)
            .header("Content-Type", "application/x-www-form-urlencoded");
        answered(asked.body(form.finish())).await
    }

    /// Returns the names of what can be written in the form of a page that is sent to `path`.
    pub(crate) async fn fields(&self, page: &str, path: &str) -> Vec<String> {
        let page = self.read(page).await.text;
        let sent = format!("action=\"{path}\"");
        let (_, form) = page.split_once(&sent).unwrap();
        let form = form.split("</form>").next().unwrap_or_default();
        let fields = form.split(['<', '>']).filter(|tag| {
            let kinds = ["input ", "textarea ", "select "];
            kinds.iter().any(|kind| tag.starts_with(kind)) && !tag.contains("type=\"hidden\"")
        });
        let names = fields.filter_map(|field| field.split_once(" name=\"")?.1.split('"').next());
        names.map(str::to_owned).collect()
    }

    /// Returns the proof that stands in the forms of a page.
    pub(crate) async fn proof(&self) -> String {
        let page = self.read("/ideas/new").await.text;
        let (_, rest) = page.split_once("name=\"csrf\" value=\"").unwrap();
        rest.split('"').next().unwrap().to_owned()
    }
}
