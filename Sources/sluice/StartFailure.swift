import ArgumentParser

/// Why the gateway did not come up; thrown by `run`.
enum StartFailure: Error, CustomStringConvertible {
    /// `--require-target`, and no endpoint answered.
    case targetUnavailable(String)
    /// A listener could not be bound, or the system refused something else.
    case refusedBySystem(String)

    var description: String {
        switch self {
        case .targetUnavailable(let reason), .refusedBySystem(let reason): reason
        }
    }

    var exitCode: ExitCode {
        switch self {
        case .targetUnavailable: ExitStatus.unavailable
        case .refusedBySystem: ExitStatus.systemFault
        }
    }
}
