import ArgumentParser
import GatewayConfiguration
import StreamTransport
import WebSocketProtocol

/// Parses the values of options and collects their problems.
struct OptionReader {
    /// One line each: `--option: reason; remedy`.
    private(set) var problems: [String] = []

    mutating func value<Value>(_ option: String, _ text: String?, _ syntax: ValueSyntax<Value>) -> Value? {
        guard let text else { return nil }
        do throws(ValueSyntaxError) {
            return try syntax.parse(text)
        } catch {
            self.reject(option, "expected \(error.expected), found \(QuotedText.quoted(text))", remedy: error.remedy)
            return nil
        }
    }

    /// - Parameter remedy: what to do instead, without a full stop; may be empty.
    mutating func reject(_ option: String, _ reason: String, remedy: String = "") {
        self.problems.append("\(option): \(reason)" + (remedy.isEmpty ? "" : "; \(remedy)"))
    }

    /// Rejects empty values, which scripts pass for variables that are not set: they must not select everything.
    mutating func requireText(_ option: String, _ values: [String]) {
        guard values.contains("") else { return }
        self.reject(option, "is empty", remedy: option.hasPrefix("--") ? "give a value, or leave \(option) out" : "")
    }

    /// As for several values; `nil` is none.
    mutating func requireText(_ option: String, _ value: String?) {
        self.requireText(option, value.map { [$0] } ?? [])
    }

    /// Parses a duration of at most a day.
    /// - Returns: milliseconds.
    mutating func milliseconds(_ option: String, _ text: String?, _ range: ClosedRange<Duration>? = nil) -> Double? {
        self.value(option, text, .duration(range ?? .zero ... .seconds(86400))).map { $0 / .milliseconds(1) }
    }

    /// Parses the values of `--header`. Fields with the same name are joined with commas (RFC 9110 §5.3).
    /// - Returns: `nil` without fields.
    mutating func headers(_ texts: [String]) -> [String: String]? {
        var headers: [String: String] = [:]
        for text in texts {
            guard let field = self.value("--header", text, ValueSyntax<HTTPField>.headerField) else { continue }
            let name = headers.keys.first { $0.lowercased() == field.name.lowercased() } ?? field.name
            headers[name] = headers[name].map { "\($0), \(field.value)" } ?? field.value
        }
        return headers.isEmpty ? nil : headers
    }

    /// Reads the file that `option` names.
    /// - Parameter limit: maximum size in bytes.
    static func file(_ path: String, _ option: String, limit: Int = 1 << 20) throws(UnusableFiles) -> [UInt8] {
        do throws(SystemError) {
            return try SystemFile.read(path, limit: limit, waits: true)
        } catch {
            throw UnusableFiles("sluice: \(option): \(path): \(error)")
        }
    }

    /// Reads the PEM file of `--ca`.
    static func authorities(_ path: String) throws(UnusableFiles) -> String {
        String(decoding: try self.file(path, "--ca", limit: 512 << 10), as: UTF8.self)
    }
}

extension ArgumentHelp {
    /// - Parameter name: placeholder of the value in the synopsis.
    static func value(_ name: String?, _ text: String) -> ArgumentHelp {
        ArgumentHelp(text, valueName: name)
    }
}

/// Everything wrong with the options of one command line.
struct UsageProblems: Error, CustomStringConvertible {
    /// One line each.
    let problems: [String]

    var description: String { self.problems.joined(separator: "\n") }
}
