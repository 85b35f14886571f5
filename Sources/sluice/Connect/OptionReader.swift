import GatewayCore

/// Turns the texts of options into values, and keeps what is wrong with them.
struct OptionReader {
    private(set) var problems: [ConfigurationProblem] = []

    mutating func value<Value>(_ option: String, _ text: String?, _ syntax: ValueSyntax<Value>) -> Value? {
        guard let text else { return nil }
        do throws(TextFault) {
            return try syntax.parse(text)
        } catch {
            self.note(option, expected: error.expected, found: QuotedText.quoted(text), remedy: error.remedy)
            return nil
        }
    }

    mutating func note(_ option: String, expected: String, found: String, remedy: String = "") {
        self.problems.append(
            ConfigurationProblem(
                origin: .option(option), keyPath: .root, expected: expected, found: found,
                remedy: remedy))
    }
}
