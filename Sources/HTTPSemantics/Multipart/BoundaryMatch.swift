/// Looks for a delimiter of parts at the beginning of a line (RFC 2046 §5.1.1).
struct BoundaryMatch: Equatable, Sendable {
    enum Outcome: Equatable {
        case none
        /// It may become one: more bytes are needed.
        case open
        /// Up to `end`, its line's end included.
        case delimiter(end: Int, isLast: Bool)
    }

    /// Blanks between a delimiter and its line's end; with more it is none.
    static let paddingLimit = 64

    /// As the RFC has it; and as servers have it that write the two dashes into the parameter itself.
    private let forms: [[UInt8]]

    init(boundary: [UInt8]) {
        let dashes: [UInt8] = [UInt8(ascii: "-"), UInt8(ascii: "-")]
        self.forms = [dashes + boundary] + (boundary.starts(with: dashes) ? [boundary] : [])
    }

    /// - Parameter start: where a line begins.
    func outcome(in bytes: [UInt8], at start: Int) -> Outcome {
        for form in self.forms {
            let outcome = Self.outcome(of: form, in: bytes, at: start)
            if outcome != .none { return outcome }
        }
        return .none
    }

    private static func outcome(of form: [UInt8], in bytes: [UInt8], at start: Int) -> Outcome {
        let there = bytes[start...].prefix(form.count)
        guard form.starts(with: there) else { return .none }
        guard there.count == form.count else { return .open }
        var index = there.endIndex
        if index < bytes.count, bytes[index] == UInt8(ascii: "-") {
            guard index + 1 < bytes.count else { return .open }
            return bytes[index + 1] == UInt8(ascii: "-") ? .delimiter(end: index + 2, isLast: true) : .none
        }
        while index < bytes.count, bytes[index].isBlank, index - there.endIndex < self.paddingLimit { index += 1 }
        if index < bytes.count, bytes[index] == 0x0D { index += 1 }
        guard index < bytes.count else { return .open }
        return bytes[index] == 0x0A ? .delimiter(end: index + 1, isLast: false) : .none
    }
}
