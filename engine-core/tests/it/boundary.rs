//! Programs that must not compile: a policy, leaf or search that reads more than the public state.

#[test]
#[ignore = "builds the library and its dependencies once more; PublicState's examples are quick"]
fn a_policy_cannot_read_what_is_not_public() {
    let programs = trybuild::TestCases::new();
    programs.pass("tests/boundary/public.rs");
    for forbidden in ["score", "level", "moves_played", "seed", "game"] {
        programs.compile_fail(format!("tests/boundary/{forbidden}.rs"));
    }
}
