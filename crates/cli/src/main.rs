//! The `pagefold` command.

fn main() -> std::process::ExitCode {
    pagefold_cli::run(None)
}
