import GatewayConfiguration
import GatewayCore

enum ConfigurationCheck {
    private enum Outcome: Equatable {
        case configuration(Configuration)
        case problems(ConfigurationProblems)
    }

    static func run(_ bytes: [UInt8]) throws(InvariantViolation) {
        let outcome = self.read(bytes)
        try InvariantViolation.expect(self.read(bytes) == outcome, "told differently a second time")
        guard case .problems(let problems) = outcome else { return }
        try InvariantViolation.expect(!problems.all.isEmpty, "refused without a problem")
        for problem in problems.all {
            let line = problem.description
            try InvariantViolation.expect(line.hasPrefix("input.yaml"), "names no place: \(line)")
            try InvariantViolation.expect(!problem.expected.isEmpty && !problem.found.isEmpty, "says nothing: \(line)")
            let isOneLine = line.unicodeScalars.allSatisfy { $0.value >= 0x20 && $0.value != 0x7F }
            try InvariantViolation.expect(isOneLine, "control characters in the message: \(line.debugDescription)")
        }
    }

    private static func read(_ bytes: [UInt8]) -> Outcome {
        do throws(ConfigurationProblems) {
            return .configuration(try ConfigurationReader.read(bytes, file: "input.yaml").configuration)
        } catch {
            return .problems(error)
        }
    }
}
