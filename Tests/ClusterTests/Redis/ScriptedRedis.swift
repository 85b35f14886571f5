import Cluster
import RedisEngine
import StreamTransport
import TestSupport

/// A Redis server whose answers a test decides on: reads commands of all connections, and answers as an empty server would
/// where the test says nothing.
final class ScriptedRedis {
    struct Call: Equatable {
        let connection: Int
        let words: [String]
    }

    let listener: ScriptedListener
    private(set) var calls: [Call] = []
    /// Answers a command instead of the server; `nil` leaves it to the server, an empty string gives no answer.
    var answer: ([String]) -> String? = { _ in nil }
    var role = "master"
    var program = "redis"
    var version = "7.0.15"
    var speaksRESP3 = true
    /// Scripts that the server has, by digest.
    var scripts: Set<String> = []
    private var rests: [Int: [UInt8]] = [:]

    init(on host: ScriptedHost, at address: SocketAddress) throws {
        self.listener = try host.listen(at: address)
    }

    var connections: [ScriptedPeer] { self.listener.accepted }
    /// Names of the commands after the handshake.
    var names: [String] { self.calls.map { $0.words[0] }.filter { $0 != "HELLO" } }

    /// Answers what has arrived.
    func serve() {
        for (index, peer) in self.connections.enumerated() where !peer.isClosed {
            var rest = self.rests[index, default: []] + peer.takeReceived()
            while let words = Self.takeCommand(&rest) {
                self.calls.append(Call(connection: index, words: words))
                peer.send(self.answer(words) ?? self.reply(words))
            }
            self.rests[index] = rest
            if peer.sawEnd { peer.close() }
        }
    }

    func send(_ text: String, on connection: Int? = nil) {
        self.connections[connection ?? self.connections.count - 1].send(text)
    }

    func publish(_ payload: String, on channel: String) {
        self.send(Self.push(["message", channel, payload]))
    }

    private func reply(_ words: [String]) -> String {
        switch words[0].uppercased() {
        case "HELLO":
            guard self.speaksRESP3 else { return "-ERR unknown command 'HELLO'\r\n" }
            let entries = [("server", self.program), ("version", self.version), ("role", self.role)]
            return "%4\r\n$5\r\nproto\r\n:3\r\n" + entries.map { Self.blob($0) + Self.blob($1) }.joined()
        case "SCRIPT":
            let digest = RedisScript(words[2]).digest
            self.scripts.insert(digest)
            return Self.blob(digest)
        case "EVAL":
            self.scripts.insert(RedisScript(words[1]).digest)
            return Self.blob("evaluated")
        case "EVALSHA": return self.scripts.contains(words[1]) ? Self.blob("evaluated") : "-NOSCRIPT No script\r\n"
        case "SUBSCRIBE", "UNSUBSCRIBE", "SSUBSCRIBE", "SUNSUBSCRIBE":
            return words.dropFirst().enumerated().map { index, channel in
                ">3\r\n\(Self.blob(words[0].lowercased()))\(Self.blob(channel)):\(index + 1)\r\n"
            }.joined()
        case "PING": return "+PONG\r\n"
        case "ECHO": return Self.blob(words[1])
        default: return "+OK\r\n"
        }
    }

    static func blob(_ text: String) -> String { "$\(text.utf8.count)\r\n\(text)\r\n" }

    static func push(_ words: [String]) -> String { ">\(words.count)\r\n" + words.map(self.blob).joined() }

    /// Takes an array of blob strings off the front of `bytes`; `nil` while it is not complete.
    private static func takeCommand(_ bytes: inout [UInt8]) -> [String]? {
        var rest = bytes[...]
        func line() -> Int? {
            guard let end = rest.firstIndex(of: 0x0A) else { return nil }
            defer { rest = rest[(end + 1)...] }
            return Int(String(decoding: rest[(rest.startIndex + 1)..<(end - 1)], as: UTF8.self))
        }
        guard let count = line() else { return nil }
        var words: [String] = []
        for _ in 0..<count {
            guard let length = line(), rest.count >= length + 2 else { return nil }
            words.append(String(decoding: rest.prefix(length), as: UTF8.self))
            rest = rest.dropFirst(length + 2)
        }
        bytes = Array(rest)
        return words
    }
}
