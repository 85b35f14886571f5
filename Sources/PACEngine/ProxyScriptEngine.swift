/// Evaluates one proxy auto-configuration script (PAC) in an interpreter of its own: it reaches no file and no network,
/// and its time and memory are bounded. Used by one thread at a time.
///
/// The script has the twelve functions of the format and `alert`, which does nothing. A name that it looks up is not
/// resolved here: the evaluation ends with `.lookup`, and the caller repeats it once it knows the answer. A script must
/// therefore choose the same way when it is asked the same again.
package final class ProxyScriptEngine {
    /// Bytes of the interpreter and the script's objects together, what the allocator needs for each of them included.
    package static let memoryLimit = 32 << 20
    /// Bytes of a script.
    package static let sourceLimit = 1 << 20
    package static let standardLibrary = "libduktape.so.207"

    private let source: String
    private let timeLimit: Duration
    private let library: String
    /// `nil` before the first evaluation, and after one that was cut off.
    private var interpreter: Interpreter?

    /// - Parameters:
    ///   - timeLimit: of each evaluation; the first one includes running the script itself.
    ///   - library: file name of Duktape's library.
    package init(
        _ source: String, timeLimit: Duration = .seconds(2), library: String = ProxyScriptEngine.standardLibrary
    ) throws(ProxyScriptFailure) {
        guard source.utf8.count <= Self.sourceLimit else { throw .failed("it has more than \(Self.sourceLimit) bytes") }
        try Interpreter.openLibrary(library)
        self.source = source
        self.library = library
        self.timeLimit = timeLimit
    }

    /// Calls `FindProxyForURL`.
    /// - Parameters:
    ///   - host: without brackets.
    ///   - names: addresses of the names known so far; an empty one for a name without an address.
    ///   - ownAddress: the answer of `myIpAddress`.
    ///   - zone: of local times, in seconds east of UTC; `nil` for the system's at this time. It holds for all dates.
    package func evaluate(
        url: String, host: String, names: [String: String] = [:], ownAddress: String = "127.0.0.1",
        zone: Int? = nil
    ) throws(ProxyScriptFailure) -> ProxyScriptAnswer {
        let zone = zone ?? Interpreter.systemZone
        let table = names.map { "\(Self.literal("." + $0.key)):\(Self.literal($0.value))" }.joined(separator: ",")
        let call =
            "__find(\(Self.literal(url)),\(Self.literal(host)),{\(table)},\(Self.literal(ownAddress)),\(zone))"
        let answer: String
        do throws(ProxyScriptFailure) {
            answer = try self.loaded(zone).run(call, for: self.timeLimit)
        } catch {
            self.interpreter = nil
            throw error
        }
        let text = String(answer.dropFirst())
        return switch answer.first {
        case "=": .proxies(text)
        case "?": .lookup(text)
        default: throw .failed(text)
        }
    }

    private func loaded(_ zone: Int) throws(ProxyScriptFailure) -> Interpreter {
        if let interpreter { return interpreter }
        let interpreter = try Interpreter(memoryLimit: Self.memoryLimit, library: self.library)
        let result = try interpreter.run(
            ProxyScriptPrelude.text + "__load(\(Self.literal(self.source)),\(zone))", for: self.timeLimit)
        guard result == "=" else { throw .failed(String(result.dropFirst())) }
        self.interpreter = interpreter
        return interpreter
    }

    /// A string literal of JavaScript, in ASCII.
    private static func literal(_ text: String) -> String {
        var literal = "\""
        for unit in text.utf16 {
            switch unit {
            case 0x20...0x7E where unit != 0x22 && unit != 0x5C:
                literal.unicodeScalars.append(Unicode.Scalar(UInt8(unit)))
            default:
                let digits = String(unit, radix: 16)
                literal += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
            }
        }
        return literal + "\""
    }
}

package enum ProxyScriptAnswer: Hashable, Sendable {
    /// What `FindProxyForURL` returned; empty for a direct connection.
    case proxies(String)
    /// The script needs the address of this name.
    case lookup(String)
}

package enum ProxyScriptFailure: Error, Hashable, Sendable, CustomStringConvertible {
    case libraryMissing(String)
    /// The interpreter needs memory or a thread that the system does not give, or the script more than its bound.
    case outOfMemory
    case outOfTime(Duration)
    case failed(String)

    package var description: String {
        switch self {
        case .libraryMissing(let reason): "no interpreter for it is installed (package libduktape207): \(reason)"
        case .outOfMemory: "it needs too much memory"
        case .outOfTime(let limit): "it ran for more than \(limit)"
        case .failed(let text): text
        }
    }
}
