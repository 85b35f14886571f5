import HTTPTypes
import WireText

/// Incremental parser for `multipart/x-mixed-replace` and other multipart types (RFC 2046 §5.1.1).
///
/// The parts do not depend on how the bytes were split. Accepts bare LF as line end, which many cameras send. Buffers
/// at most the header fields of one part, or one delimiter.
package struct MultipartParser: Sendable {
    /// Most bytes of one part's header fields, and most fields.
    package static let headLimit = 16_384
    package static let fieldLimit = 128
    /// Longest boundary in bytes; RFC 2046 allows 70.
    private static let boundaryLimit = 256

    private enum State: Equatable {
        /// Before the first delimiter; ignored.
        case preamble
        case head(HTTPFields, size: Int)
        case content
        /// After a delimiter.
        case between(isLast: Bool)
        case over
    }

    private let boundary: BoundaryMatcher
    private var state = State.preamble
    private var buffer: [UInt8] = []
    /// Offset in `buffer` of the first byte not parsed yet.
    private var start = 0
    /// Whether `start` is at the beginning of a line, and the line end before it is not content.
    private var isAtLineStart = true
    private var hasEnded = false

    /// - Parameter boundary: of `Content-Type`.
    /// - Returns: `nil` if it is empty or too long.
    package init?(boundary: String) {
        guard !boundary.isEmpty, boundary.utf8.count <= Self.boundaryLimit else { return nil }
        self.boundary = BoundaryMatcher(boundary: Array(boundary.utf8))
    }

    /// Adds content; call `nextEvent()` afterwards until it returns `nil`.
    package mutating func bytesReceived(_ bytes: some Collection<UInt8>) {
        guard self.state != .over, !self.hasEnded else { return }
        self.buffer.removeFirst(self.start)
        self.start = 0
        self.buffer.append(contentsOf: bytes)
    }

    /// Bytes that are not parsed yet.
    package var bufferedCount: Int { self.buffer.count - self.start }

    /// Marks the end of the content; call `nextEvent()` afterwards until it returns `nil`.
    package mutating func inputEnded() {
        self.hasEnded = true
    }

    /// - Returns: `nil` if more bytes are needed.
    package mutating func nextEvent() -> MultipartEvent? {
        while true {
            let step =
                switch self.state {
                case .over: Step.wait
                case .between(let isLast): self.begin(isLast: isLast)
                case .head(let fields, let size): self.readLine(fields, size: size)
                case .preamble, .content: self.scan()
                }
            switch step {
            case .proceed: continue
            case .event(let event): return event
            case .wait: return self.hasEnded ? self.finalEvent() : nil
            }
        }
    }

    private enum Step {
        case proceed
        case wait
        case event(MultipartEvent)
    }

    private mutating func begin(isLast: Bool) -> Step {
        if isLast { return .event(self.finish(.finished)) }
        self.state = .head([:], size: 0)
        return .proceed
    }

    private mutating func finish(_ event: MultipartEvent) -> MultipartEvent {
        self.state = .over
        self.buffer = []
        self.start = 0
        return event
    }

    /// The remaining events at the end of input.
    private mutating func finalEvent() -> MultipartEvent? {
        switch self.state {
        case .over: return nil
        case .preamble: return self.finish(.violation(.noParts))
        case .content where self.start < self.buffer.count:
            // The beginning of a delimiter that did not follow is content.
            defer { self.start = self.buffer.count }
            return .content(Array(self.buffer[self.start...]))
        case .content, .head, .between: return self.finish(.violation(.truncated))
        }
    }

    /// Parses one line of a part's header fields.
    private mutating func readLine(_ fields: HTTPFields, size: Int) -> Step {
        let rest = self.buffer[self.start...]
        let end = rest.firstIndex(of: 0x0A)
        let size = size + (end ?? rest.endIndex) - rest.startIndex
        guard size <= Self.headLimit, fields.count <= Self.fieldLimit else {
            return .event(self.finish(.violation(.headTooLarge)))
        }
        guard let end else { return .wait }
        var line = rest[..<end]
        if line.last == 0x0D { line.removeLast() }
        self.start = end + 1
        if line.isEmpty {
            self.state = .content
            self.isAtLineStart = true
            return .event(.partBegan(fields))
        }
        self.state = .head(Self.adding(line, to: fields), size: size + 1)
        return .proceed
    }

    /// Ignores malformed lines, as the content is still usable.
    private static func adding(_ line: ArraySlice<UInt8>, to fields: HTTPFields) -> HTTPFields {
        var fields = fields
        let colon = line.firstIndex(of: UInt8(ascii: ":")) ?? line.endIndex
        let name = HTTPField.Name(String(decoding: line[..<colon], as: UTF8.self).trimmingBlanks)
        guard let name, colon < line.endIndex else { return fields }
        let value = String(decoding: line[(colon + 1)...], as: UTF8.self).trimmingBlanks
        fields.append(HTTPField(name: name, value: value))
        return fields
    }

    /// Searches for the next delimiter in the content or preamble.
    private mutating func scan() -> Step {
        if self.isAtLineStart {
            switch self.boundary.outcome(in: self.buffer, at: self.start) {
            case .partial: return .wait
            case .delimiter(let end, let isLast): return self.passDelimiter(end, isLast: isLast)
            case .none: self.isAtLineStart = false
            }
        }
        var from = self.start
        while let lineEnd = self.buffer[from...].firstIndex(of: 0x0A) {
            let outcome = self.boundary.outcome(in: self.buffer, at: lineEnd + 1)
            if outcome != .none {
                let hasReturn = lineEnd > self.start && self.buffer[lineEnd - 1] == 0x0D
                let end = hasReturn ? lineEnd - 1 : lineEnd
                if end > self.start { return self.emit(upTo: end) }
                guard case .delimiter(let delimiterEnd, let isLast) = outcome else { return .wait }
                return self.passDelimiter(delimiterEnd, isLast: isLast)
            }
            from = lineEnd + 1
        }
        // A carriage return at the end may be part of the next delimiter.
        let end = self.buffer.last == 0x0D ? self.buffer.count - 1 : self.buffer.count
        return end > self.start ? self.emit(upTo: end) : .wait
    }

    private mutating func emit(upTo end: Int) -> Step {
        let content = self.buffer[self.start..<end]
        self.start = end
        return self.state == .content ? .event(.content(Array(content))) : .proceed
    }

    private mutating func passDelimiter(_ end: Int, isLast: Bool) -> Step {
        let hadPart = self.state == .content
        self.start = end
        self.state = .between(isLast: isLast)
        return hadPart ? .event(.partEnded) : .proceed
    }
}

/// Matches a delimiter at the beginning of a line (RFC 2046 §5.1.1).
private struct BoundaryMatcher: Equatable, Sendable {
    enum Outcome: Equatable {
        case none
        /// A prefix of a delimiter: more bytes are needed.
        case partial
        /// A delimiter up to `end`, line end included.
        case delimiter(end: Int, isLast: Bool)
    }

    /// Most blanks between a delimiter and its line end.
    private static let paddingLimit = 64

    /// The RFC's form; and the form of servers that include the two dashes in the boundary parameter.
    private let forms: [[UInt8]]

    init(boundary: [UInt8]) {
        let dashes: [UInt8] = [UInt8(ascii: "-"), UInt8(ascii: "-")]
        self.forms = [dashes + boundary] + (boundary.starts(with: dashes) ? [boundary] : [])
    }

    /// - Parameter start: offset of the beginning of a line.
    func outcome(in bytes: [UInt8], at start: Int) -> Outcome {
        for form in self.forms {
            let outcome = Self.outcome(of: form, in: bytes, at: start)
            if outcome != .none { return outcome }
        }
        return .none
    }

    private static func outcome(of form: [UInt8], in bytes: [UInt8], at start: Int) -> Outcome {
        let candidate = bytes[start...].prefix(form.count)
        guard form.starts(with: candidate) else { return .none }
        guard candidate.count == form.count else { return .partial }
        var index = candidate.endIndex
        if index < bytes.count, bytes[index] == UInt8(ascii: "-") {
            guard index + 1 < bytes.count else { return .partial }
            return bytes[index + 1] == UInt8(ascii: "-") ? .delimiter(end: index + 2, isLast: true) : .none
        }
        while index < bytes.count, bytes[index].isBlank, index - candidate.endIndex < self.paddingLimit { index += 1 }
        if index < bytes.count, bytes[index] == 0x0D { index += 1 }
        guard index < bytes.count else { return .partial }
        return bytes[index] == 0x0A ? .delimiter(end: index + 1, isLast: false) : .none
    }
}

package enum MultipartEvent: Equatable, Sendable {
    case partBegan(HTTPFields)
    /// Content of the part, never empty.
    case content([UInt8])
    case partEnded
    /// The close delimiter was read; the rest is ignored. The last event.
    case finished
    /// The content is malformed or truncated. The last event.
    case violation(MultipartViolation)
}

/// Why multipart content is refused.
package enum MultipartViolation: Error, Equatable, Sendable {
    /// The header fields of a part exceed a limit.
    case headTooLarge
    /// The content ended without the close delimiter, as most camera streams do.
    case truncated
    /// The content ended without a delimiter.
    case noParts
}
