import ArgumentParser
import ControlClient

extension ControlFailure {
    var exitCode: ExitCode {
        switch self.kind {
        case .wrongRequest: ExitStatus.usage
        case .wrongConfiguration: ExitStatus.configuration
        case .unsendableInput: ExitCode(65)
        case .unknown: ExitCode(66)
        case .noConnection: ExitStatus.unavailable
        case .fault: ExitStatus.internalFault
        case .later, .nothingCame: ExitCode(75)
        case .nonsense: ExitCode(76)
        case .notAllowed: ExitCode(77)
        case .secure: ExitCode(79)
        case .peer: ExitCode(80)
        case .conflict: ExitCode(81)
        case .cancelled: ExitCode(130)
        }
    }
}
