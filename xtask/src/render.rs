//! `cargo xtask render`: renders every example with the real Crossplane and with `paved preview`.
//!
//! Crossplane's own engine calls the function's binary over gRPC. The rendered resources must be
//! valid by our XRDs and the providers' schemas. Each field must equal the output of
//! `paved preview` for the same files.

mod compare;
mod crossplane;
mod example;
mod paved;

use std::{cell::OnceCell, collections::BTreeSet, time::Instant};

use ::crossplane::names::SLOT;
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use self::{
    compare::differences,
    crossplane::Crossplane,
    example::{Example, is_composed},
    paved::Paved,
};
use crate::{server::Server, workspace};

/// Flags of the function for a render: no TLS, and no metrics.
const FUNCTION_FLAGS: [&str; 3] = ["--insecure", "--metrics-address", ""];

/// Flags of `cargo xtask render`.
#[derive(clap::Args)]
pub struct Args {
    /// Parts of example names, for example `gpu-workspace` or `namespaced` [default: all examples].
    names: Vec<String>,
}

/// Renders the examples and prints one line for each. Fails at the end if an example differs.
pub fn run(args: &Args) -> Result<()> {
    let binaries = workspace::build(&["function", "paved"])?;
    let paved = Paved { program: binaries.join("paved") };
    let function = Server::start(&binaries.join("function"), &FUNCTION_FLAGS)?;
    let crossplane = Crossplane::new(function.address())?;
    let start = Instant::now();
    let (mut all, mut differed) = (0, 0);
    for example in &args.examples()? {
        let bench = Bench::new(example, &crossplane, &paved);
        for (what, proof) in PROOFS {
            let began = Instant::now();
            let problems = proof(&bench)
                .with_context(|| format!("{}: {what}{}", example.name, function.last_words()))?;
            let Some(problems) = problems else { continue };
            report(&example.name, what, &problems, began);
            all += 1;
            differed += usize::from(!problems.is_empty());
        }
    }
    ensure!(differed == 0, "{differed} of {all} renderings differed");
    println!("{all} renderings are the same, in {:.1} s", start.elapsed().as_secs_f64());
    Ok(())
}

fn report(example: &str, proof: &str, problems: &[String], began: Instant) {
    let verdict = if problems.is_empty() { "same" } else { "DIFFERS" };
    println!("{example:48} {proof:24} {verdict:7} {:5.1} s", began.elapsed().as_secs_f64());
    for problem in problems {
        println!("    {problem}");
    }
}

impl Args {
    fn examples(&self) -> Result<Vec<Example>> {
        let named = |example: &Example| {
            self.names.is_empty()
                || self.names.iter().any(|name| example.name.contains(name.as_str()))
        };
        let examples: Vec<_> = Example::all()?.into_iter().filter(named).collect();
        ensure!(!examples.is_empty(), "no example is called {}", self.names.join(" or "));
        Ok(examples)
    }
}

/// The inputs of a proof.
struct Bench<'a> {
    example: &'a Example,
    crossplane: &'a Crossplane,
    paved: &'a Paved,
    once: OnceCell<Vec<Value>>,
    again: OnceCell<Vec<Value>>,
}

impl<'a> Bench<'a> {
    fn new(example: &'a Example, crossplane: &'a Crossplane, paved: &'a Paved) -> Self {
        Self { example, crossplane, paved, once: OnceCell::new(), again: OnceCell::new() }
    }

    /// Crossplane's rendering of the example. The first call takes seconds.
    fn once(&self) -> Result<&[Value]> {
        self.rendered(&self.once)
    }

    /// A second rendering, in which generated values differ.
    fn again(&self) -> Result<&[Value]> {
        self.rendered(&self.again)
    }

    fn rendered<'c>(&self, cell: &'c OnceCell<Vec<Value>>) -> Result<&'c [Value]> {
        if let Some(rendered) = cell.get() {
            return Ok(rendered);
        }
        let rendered = self.crossplane.render(self.example)?;
        Ok(cell.get_or_init(|| rendered))
    }
}

/// Returns the differences, or `None` if the proof does not apply to the example.
type Proof = fn(&Bench<'_>) -> Result<Option<Vec<String>>>;

const PROOFS: &[(&str, Proof)] = &[
    ("as previewed", as_previewed),
    ("from its claim", from_its_claim),
    ("by settingsFrom", by_settings_from),
    ("with Crossplane 1.20", with_crossplane_1_20),
];

/// Crossplane's rendering is valid and equals `paved preview`.
fn as_previewed(bench: &Bench<'_>) -> Result<Option<Vec<String>>> {
    let rendered = bench.once()?;
    let mut problems = bench.crossplane.validate(rendered)?;
    problems.extend(against_preview(bench, bench.example, rendered)?);
    Ok(Some(problems))
}

/// The XR that Crossplane creates from the example's claim has the same rendering as the example's
/// XR.
fn from_its_claim(bench: &Bench<'_>) -> Result<Option<Vec<String>>> {
    let Bench { example, crossplane, .. } = bench;
    let (Some(claim), None) = (&example.claim, &example.observed) else { return Ok(None) };
    let converted = Example { xr: crossplane.xr_of(claim, &example.xr)?, ..(*example).clone() };
    let (once, again) = (bench.once()?, bench.again()?);
    let from_claim = crossplane.render(&converted)?;
    let generated = compare::generated(once, again);
    Ok(Some(differences(("the XR", once), ("the claim", &from_claim), &generated)))
}

/// Settings in an EnvironmentConfig have the same effect as Settings in the Composition.
fn by_settings_from(bench: &Bench<'_>) -> Result<Option<Vec<String>>> {
    let Bench { example, crossplane, .. } = bench;
    if example.observed.is_some() {
        return Ok(None);
    }
    let elsewhere = example.with_settings_elsewhere(crossplane.scratch())?;
    let (once, again) = (bench.once()?, bench.again()?);
    let rendered = crossplane.render(&elsewhere)?;
    let generated = compare::generated(once, again);
    let mut problems = differences(("the input", once), ("settingsFrom", &rendered), &generated);
    problems.extend(against_preview(bench, &elsewhere, &rendered)?);
    Ok(Some(problems))
}

/// The command line of Crossplane 1.20 composes resources with the same specs.
fn with_crossplane_1_20(bench: &Bench<'_>) -> Result<Option<Vec<String>>> {
    let Bench { example, crossplane, .. } = bench;
    if example.claim.is_none() || example.observed.is_some() {
        return Ok(None);
    }
    let specs = |documents: &[Value]| -> Vec<Value> {
        let composed = documents.iter().filter(|document| is_composed(document));
        let spec = |document: &Value| {
            let annotations = json!({SLOT: document["metadata"]["annotations"][SLOT]});
            json!({"metadata": {"annotations": annotations}, "spec": document["spec"]})
        };
        composed.map(spec).collect()
    };
    let (once, old) = (specs(bench.once()?), specs(&crossplane.render_with_1_20(example)?));
    Ok(Some(differences(("crossplane", &once), ("crossplane 1.20", &old), &BTreeSet::new())))
}

fn against_preview(
    bench: &Bench<'_>,
    example: &Example,
    rendered: &[Value],
) -> Result<Vec<String>> {
    let (once, again) = (bench.paved.preview(example)?, bench.paved.preview(example)?);
    Ok(differences(("crossplane", rendered), ("paved", &once), &compare::generated(&once, &again)))
}
