/// How an input breaks what must hold for any bytes.
package struct InvariantViolation: Error, Equatable, CustomStringConvertible {
    package let description: String

    init(_ description: String) {
        self.description = description
    }

    static func expect(_ holds: Bool, _ description: @autoclosure () -> String) throws(InvariantViolation) {
        guard holds else { throw InvariantViolation(description()) }
    }
}
