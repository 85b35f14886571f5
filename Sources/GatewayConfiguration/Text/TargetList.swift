import WireText

/// Targets by name, in the format of websockify's token files: one `NAME: HOST:PORT` a line.
package struct TargetList: Sendable, Equatable {
    /// Bytes of all files together.
    package static let byteLimit = 1 << 20
    /// Targets of all files together.
    package static let limit = 10_000
    private static let nameLimit = 255

    /// By the bytes of their names: Unicode would take different ones for equal.
    private var targets: [[UInt8]: EndpointURL] = [:]

    package init() {}

    package var urls: Set<EndpointURL> { Set(self.targets.values) }

    package subscript(_ name: String) -> EndpointURL? { self.targets[Array(name.utf8)] }

    /// Adds the targets of one file. Empty lines, and those that begin with `#`, say nothing.
    package mutating func add(_ file: [UInt8]) throws(TargetListError) {
        let mark: [UInt8] = [0xEF, 0xBB, 0xBF]
        let lines = file.dropFirst(file.starts(with: mark) ? mark.count : 0)
            .split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
        for (index, line) in lines.enumerated() {
            let bytes = line.last == UInt8(ascii: "\r") ? line.dropLast() : line
            do throws(ValueSyntaxError) {
                try self.add(line: bytes)
            } catch {
                throw TargetListError(line: index + 1, expected: error.expected, remedy: error.remedy)
            }
        }
    }

    private mutating func add(line: ArraySlice<UInt8>) throws(ValueSyntaxError) {
        guard let text = String(validating: line, as: UTF8.self)?.trimmingBlanks else {
            throw ValueSyntaxError(expected: "text in UTF-8")
        }
        guard let first = text.utf8.first, first != UInt8(ascii: "#") else { return }
        let bytes = Array(text.utf8)
        // A colon within the name or the target has no blank after it.
        guard let colon = bytes.indices.dropLast().first(where: { bytes[$0] == 0x3A && bytes[$0 + 1].isBlank }),
            (1...Self.nameLimit).contains(colon)
        else {
            throw ValueSyntaxError(
                expected: "a name of at most \(Self.nameLimit) bytes, a colon, a space and a target",
                remedy: "write it like desk-1: 10.0.0.5:5900")
        }
        let target = String(decoding: bytes[(colon + 1)...], as: UTF8.self).trimmingBlanks
        let url = try Self.url(target)
        guard self.targets.updateValue(url, forKey: Array(bytes[..<colon])) == nil else {
            throw ValueSyntaxError(expected: "a name that no other line has", remedy: "leave out one of the two")
        }
        guard self.targets.count <= Self.limit else {
            throw ValueSyntaxError(expected: "at most \(Self.limit) targets")
        }
    }

    private static func url(_ text: String) throws(ValueSyntaxError) -> EndpointURL {
        let url = try EndpointURL(text.contains("://") ? text : "tcp://\(text)")
        guard url.scheme == .tcp || url.scheme == .unix else {
            throw ValueSyntaxError(
                expected: "HOST:PORT, tcp://HOST:PORT or unix:///PATH",
                remedy: "make a route with a target of its own for TLS and WebSocket")
        }
        return url
    }
}

/// A line of a file of targets that is none.
package struct TargetListError: Error, Equatable, CustomStringConvertible {
    /// From 1 up.
    package let line: Int
    package let expected: String
    package let remedy: String

    package var description: String {
        "line \(self.line): expected \(self.expected)" + (self.remedy.isEmpty ? "" : "; \(self.remedy)")
    }
}
