use headcount_yardstick::MeasureError;
use std::process::ExitCode;

/// Prints what the program of this name has measured, or why it has not.
pub fn tell(name: &str, report: Result<String, MeasureError>) -> ExitCode {
    match report {
        Ok(report) => {
            println!("{}", report.trim_end());
            ExitCode::SUCCESS
        }
        Err(failed) => {
            eprintln!("{name}: {failed}");
            ExitCode::FAILURE
        }
    }
}
