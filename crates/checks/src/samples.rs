//! Whole manuscripts with planted faults, and sound ones that must stay silent.

use super::*;

fn findings(text: &str) -> Vec<(usize, String, bool)> {
    findings_with(text, &[], Limits::default())
}

fn findings_with(
    manuscript: &str,
    bibliographies: &[Bibliography<'_>],
    limits: Limits,
) -> Vec<(usize, String, bool)> {
    let checked = check(&Input {
        manuscript,
        bibliographies,
        limits,
        language: Language::En,
    });
    let found = checked.findings.into_iter();
    found
        .map(|f| (f.line, f.quote, f.gravity == Gravity::Important))
        .collect()
}

/// The quotations of the findings about one line.
fn quotes(text: &str) -> Vec<String> {
    findings(text)
        .into_iter()
        .map(|(_, quote, _)| quote)
        .collect()
}

#[test]
fn p_values_are_recomputed() {
    for (wrong, decides) in [
        ("We found t(28) = 2.20, p = .02.", false),
        ("We found *t*(28) = 1.20, *p* = .04.", true),
        ("It was F(2, 45) = 3.45, MSE = 2.1, p = .004.", false),
        ("It was $\\chi^2(1, N = 100) = 2.10$, $p < .05$.", true),
        ("A correlation of r(48) = .12, p = .01.", true),
        ("z = 1.50, p = .03", true),
        ("t = 1.20, df = 28, p = .04", true),
        ("F(1, 30) = 9.80, p > .05", true),
        ("结果显著（t（28）＝1.20，P＝0.04）。", true),
        ("差异显著：χ²(1) = 2.10，P＜0.05。", true),
    ] {
        let found = findings(wrong);
        assert_eq!(found.len(), 1, "{wrong}: {found:?}");
        assert_eq!(found[0].2, decides, "{wrong}");
    }
    for right in [
        "t(28) = 2.20, p = .036",
        "t(28) = 2.20, p = .03 and then t(28) = 2.20, p = .04",
        "*t*(28) = 2.20, *d* = 0.81, 95% CI [0.1, 1.5], *p* = .036",
        "F(2, 45) = 3.45, p = .04",
        "F(2, 45) = 3.45, p < .05",
        "χ2(1) = 3.84, p = .05",
        "t(28) = 5.10, p < .001",
        "t(28) = 5.10, p = .000",
        "r(48) = .35, p = .013",
        "z = 1.96, p = .05",
        "t = 1.20, p = .04",
        "One-sided tests: t(28) = 2.20, p = .018",
        "After Bonferroni correction, t(28) = 2.20, p = .11",
        "t(28) = 2.2, p = 3.6 × 10^-2",
        "t(28) = 12.2, p = 1e-12",
        "`t(28) = 1.20, p = .04`",
        "Figure t(3) shows p = .04.",
    ] {
        assert_eq!(quotes(right), [""; 0], "{right}");
    }
}

#[test]
fn reversed_ranges_are_found_and_scores_are_none() {
    for wrong in [
        "The mean was 4.1, 95% CI [5.2, 3.1].",
        "participants aged 65-18 years",
        "a gap of 20–10 mm",
        "see pp. 120-115",
        "the years 2020–2015",
        "年龄 65～18 岁",
        "受试者年龄65～18岁",
        "95%置信区间 [0.4, 0.1]",
        "间隔20～10毫米",
        "(95% CI: 5.2–3.1)",
    ] {
        assert_eq!(quotes(wrong).len(), 1, "{wrong}: {:?}", quotes(wrong));
    }
    for right in [
        "95% CI [3.1, 5.2] and aged 18-65 years, pp. 115–120, pp. 1234–41",
        "They won 3–1 in 2020-10-05, by an 80–20 split, in Figs 5–3.",
        "It fell from 20 to 10 mm, that is 20–10 mm in a year, from 20–10 mm.",
        "a 60–40 % mixture; blood pressure 120/80; ISBN 978-3-16-148410-0",
        "the ages 65, 40 and 18; 95% CI [-1.2, -0.5]; call 555-1234",
        "表 3–1 与图 2-1；2015—2020 年；由 20～10 mm 减小",
        "versions 2.0–1.9 and the range of 10",
    ] {
        assert_eq!(quotes(right), [""; 0], "{right}");
    }
}

#[test]
fn shares_totals_and_the_abstract_are_recomputed() {
    for wrong in [
        "Of these, 12 of 48 participants (30%), agreed.",
        "It was 30% (12/48), as before.",
        "48 名受试者中 12 名（30%）同意。",
    ] {
        assert_eq!(quotes(wrong).len(), 1, "{wrong}");
    }
    for right in [
        "12 of 48 participants (25%), 1/3 (33%), 2 out of 3 (66.6%), 67% (2/3)",
        "48 名受试者中 12 名（25%）同意。",
        "Table 3 of 12 (95% CI 2–3)",
        "| group | n |\n|---|---|\n| a | 12 |\n| b | 30 |\n| Total | 42 |\n",
        "| group | n |\n|---|---|\n| a | 12 |\n| of which c | 3 |\n| b | 30 |\n| Total | 42 |\n",
        "| group | % |\n|---|---|\n| a | 12 |\n| b | 30 |\n| Total | 40 |\n",
        "## Abstract\n\nWe reach 92.4 % in 2.5 hours.\n\n## Results\n\nIt is 0.9241, in 2.50 h.\n",
    ] {
        assert_eq!(quotes(right), [""; 0], "{right}");
    }
    let table = "| group | n |\n|---|---|\n| a | 12 |\n| b | 30 |\n| Total | 43 |\n";
    assert_eq!(findings(table), [(5, "43".into(), false)]);
    let text = "## Abstract\n\nWe reach 92.4 %.\n\n## Results\n\nIt is 91.4 %.\n";
    assert_eq!(findings(text), [(3, "92.4".into(), false)]);
}

#[test]
fn a_slip_from_a_table_is_found() {
    let table = |sentence: &str| {
        format!(
            "Table 1: Means\n\n| knot | mean | sd |\n|---|---|---|\n| bowline | 8.35 | 1.210 |\n| clove | 8.27 | 0.934 |\n\n{sentence}\n"
        )
    };
    assert_eq!(
        findings(&table("Table 1 gives 8.53 for the bowline.")).len(),
        1
    );
    assert_eq!(
        findings(&table("As Table 1 shows, the spread was 1.310.")).len(),
        1
    );
    assert_eq!(findings(&table("表 1 中为8.53。")).len(), 1);
    for right in [
        "Table 1 gives 8.35 and 8.3, a difference of 0.08 and a ratio of 1.01.",
        "Table 1 gives a mean of 8.31.",
        "Table 2 gives 8.53.",
        "Figure 1 and Table 1 give 8.53.",
        "It was 8.53 in 2019. Table 1 gives 8.35.",
    ] {
        assert_eq!(quotes(&table(right)), [""; 0], "{right}");
    }
}

#[test]
fn means_of_whole_numbers_are_possible_or_reported() {
    assert_eq!(
        quotes("On a 7-point scale, M = 3.47, SD = 1.2 (n = 25).").len(),
        1
    );
    assert_eq!(quotes("35.5% of the 20 participants agreed.").len(), 1);
    assert_eq!(quotes("20 名受试者中有 35.5% 同意。").len(), 1);
    for right in [
        "On a 7-point scale, M = 3.48, SD = 1.2 (n = 25).",
        "The mean was M = 3.47 newtons (n = 25).",
        "On a 7-point scale of ten items, M = 3.47 (n = 25).",
        "On a 7-point scale, M = 3.47 (n = 25) and M = 3.12 (n = 24).",
        "35% of the 20 participants, about 33% of 20 patients, 12.5% of 1600 students",
    ] {
        assert_eq!(quotes(right), [""; 0], "{right}");
    }
}

#[test]
fn citations_are_looked_up() {
    let bib = "@article{doe2020,\n  title = {A},\n  doi = {https://doi.org/10.1000/182},\n}\n@book{roe-21, title = {B}, doi = {1000/182}}\n@misc{unused, title={C}}\n";
    let bibliographies = [Bibliography {
        path: "paper.bib",
        text: bib,
    }];
    let text = "---\nbibliography: paper.bib\n---\n# T\n\nAs @doe2020 and [see @roe-21, p. 3; @Doe2020; -@poe99] say [@fig:one].\nMail a@b19.org, ask @quipu, \\citep[e.g.]{doe2020,moe}.\n`[@code]`\n";
    let found = findings_with(text, &bibliographies, Limits::default());
    let keys: Vec<&str> = found.iter().map(|(_, quote, _)| quote.as_str()).collect();
    assert_eq!(keys, ["Doe2020", "poe99", "moe", "1000/182"]);
    assert_eq!(found[0].0, 6);
    // Without a bibliography, or with one that cannot be read, nothing is said.
    assert_eq!(quotes(text), [""; 0]);
    let broken = [Bibliography {
        path: "paper.bib",
        text: "@article{doe2020, title = {A",
    }];
    assert_eq!(findings_with(text, &broken, Limits::default()), []);
}

#[test]
fn numbered_references_are_counted() {
    let text = "# 题\n\n前人 [1] 与 [2-3] 已证，另见 [7]，区间 [0, 10] 与 [4, 9] 不算。\n\n## 参考文献\n\n[1] 甲。\n[2] 乙。\n[3] 丙。\n[4] 丁。\n";
    let found = findings(text);
    let lines: Vec<usize> = found.iter().map(|f| f.0).collect();
    assert_eq!(lines, [3, 10], "{found:?}");
    let other = "The array [9] and [1].\n\n## References\n\n[1] A.\n[2] B.\n[3] C.\n[4] D.\n";
    assert_eq!(quotes(other), [""; 0]);
}

#[test]
fn dois_have_their_form() {
    assert_eq!(
        quotes("See doi:10.1000/182, https://doi.org/10.5281/zenodo.12 and DOI: 11.1000/182."),
        ["DOI: 11.1000/182."]
    );
    assert_eq!(
        quotes("doi: to be assigned; doi.org/10.1000/a(b)c"),
        [""; 0]
    );
}

#[test]
fn lengths_are_held_against_the_outlet() {
    let mut limits = Limits::default();
    limits.read("# JOSS\n\n- **Words:** 5-10\n- **Abstract words：** at most 2\n");
    assert_eq!((limits.text, limits.summary), (Some((5, 10)), Some((0, 2))));
    let text = "# One two\n\n## Abstract\n\nthree four five\n\n## Results\n\nsix seven eight nine ten eleven\n\n## References\n\nmany more words that are not counted at all here\n";
    let found = findings_with(text, &[], limits);
    assert_eq!(found.iter().map(|f| f.0).collect::<Vec<_>>(), [1, 3]);
}
