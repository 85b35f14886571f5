import Cluster
import GatewayCore
import RedisEngine
import StreamTransport
import TestSupport
import Testing

/// The simulation of clusters says something only if its model of Redis does what the scripts do.
@Suite("Model of Redis against a real server")
struct ModelRedisStoreTests {
    /// A real server, and the model with the same run.
    private final class Pair {
        private let server: RedisProcess
        private let testbed = TransportTestbed(.sockets)
        private let loop: Loop
        private let client: RedisClient
        private(set) var model = ModelRedisStore(run: "")

        init() throws {
            self.server = try RedisProcess()
            self.loop = try self.testbed.makeLoop()
            self.client = RedisClient(
                address: try RedisAddress(self.server.address), settings: RedisClientSettings(),
                scripts: RoomScripts.all, loop: self.loop, generator: SeededGenerator(seed: 1))
            self.testbed.perform(on: self.loop) { [client] in client.start() }
            try #require(self.testbed.run(until: { self.client.isReady }, atMost: .seconds(240)))
            let info = try self.reply { self.client.perform(RedisCommand("INFO", "server"), key: nil, $0) }
            let line = info.text.split(separator: "\r\n").first { $0.hasPrefix("run_id:") }
            self.model.run = String(try #require(line).dropFirst("run_id:".count))
        }

        private func reply(_ perform: @escaping (@escaping RedisCompletion) -> Void) throws -> RedisValue {
            var result: Result<RedisValue, RedisClientError>?
            self.testbed.perform(on: self.loop) { perform { result = $0 } }
            _ = self.testbed.run(until: { result != nil }, atMost: .seconds(240))
            return try #require(result).get()
        }

        func replies(_ call: Call) throws -> (server: String, model: String) {
            let (keys, arguments) = (call.keys, call.arguments)
            let server = try self.reply {
                self.client.perform(
                    call.script, keys: keys.map { Array($0.utf8) }, arguments: arguments.map(RedisArgument.text), $0)
            }
            let model = self.model.run(call.script.digest, keys: keys, arguments, now: 0)
            return (server.comparable, model?.reply.comparable ?? "none")
        }
    }

    private struct Call: CustomStringConvertible {
        let script: RedisScript
        let keys: [String]
        let arguments: [String]

        var description: String { "\(self.keys) \(self.arguments)" }
    }

    /// Random calls for two rooms. Nothing expires while they run.
    private struct Calls {
        private static let lifetime = "10000000"
        var generator: SeededGenerator
        let run: String
        private var epochs: [String] = ["", "other"]

        init(seed: UInt64, run: String) {
            self.generator = SeededGenerator(seed: seed)
            self.run = run
        }

        private mutating func pick<T>(_ values: [T]) -> T { values[Int(self.generator.next() % UInt64(values.count))] }

        private mutating func newEpoch() -> String {
            self.epochs.append("e\(self.epochs.count)")
            return self.epochs[self.epochs.count - 1]
        }

        mutating func next() -> Call {
            let room = "p:room:{\(self.pick(["a", "b"]))}"
            switch self.generator.next() % 8 {
            case 0...2: return self.publish(room)
            case 3, 4: return self.read(room)
            case 5: return self.change(room)
            default: return self.presence(room)
            }
        }

        private mutating func publish(_ room: String) -> Call {
            let once = self.pick([nil, nil, "1", "2"])
            let size = self.pick(["0", "3", "5"])
            var keys = size == "0" ? [] : ["\(room):meta", "\(room):stream"]
            if let once { keys.append("\(room):once:\(once)") }
            return Call(
                script: RoomScripts.publish, keys: keys,
                arguments: [
                    self.pick(["x", "message", ""]), self.newEpoch(), size, "1000000", Self.lifetime, Self.lifetime,
                    room, "PUBLISH", once == nil ? "0" : Self.lifetime, self.pick(["", self.run, "former"]),
                    self.pick(["0", "1"]), self.pick(self.epochs), self.pick(["0", "2", "7", "100"]),
                ])
        }

        private mutating func read(_ room: String) -> Call {
            let lowest = self.pick(["-", "(1-0", "3-0", "(9-0"])
            return Call(
                script: RoomScripts.read, keys: ["\(room):meta", "\(room):stream"],
                arguments: [
                    lowest, self.pick(["+", "4-0", "(6-0"]), self.pick(["0", "1", "2", "100"]), self.pick(["0", "1"]),
                    self.newEpoch(), Self.lifetime, self.pick(self.epochs), self.pick(["", self.run, "former"]),
                    self.pick(["0", "1"]), self.pick(["1", "520", "1000000"]),
                ])
        }

        private mutating func change(_ room: String) -> Call {
            guard self.generator.next() % 2 == 0 else {
                return Call(
                    script: RoomScripts.remove, keys: ["\(room):meta", "\(room):stream"],
                    arguments: [self.pick(["0", "1", "2", "5"]), "removed", room, "PUBLISH"])
            }
            return Call(
                script: RoomScripts.startNewEpoch, keys: ["\(room):meta"],
                arguments: [self.pick(self.epochs), self.pick(["0", "3", "50"]), self.newEpoch()])
        }

        private mutating func presence(_ room: String) -> Call {
            let keys = ["\(room):presence", "\(room):expiry"]
            let client = self.pick(["c1", "c2", "c3"])
            switch self.generator.next() % 4 {
            case 0:
                return Call(
                    script: RoomScripts.enter, keys: keys,
                    arguments: [Self.lifetime, "", room, "PUBLISH", client, "info of \(client)"])
            case 1: return Call(script: RoomScripts.leave, keys: keys, arguments: [client, "left", room, "PUBLISH"])
            case 2: return Call(script: RoomScripts.list, keys: keys, arguments: ["0", "1000000"])
            default:
                return Call(
                    script: RoomScripts.register, keys: ["p:user:{u}"],
                    arguments: [self.pick(["1", "2", "3"]), Self.lifetime, client])
            }
        }
    }

    @Test(arguments: 1...5)
    func scriptsAnswerLikeTheModel(_ seed: UInt64) throws {
        let pair = try Pair()
        var calls = Calls(seed: seed, run: pair.model.run)
        for number in 0..<400 {
            let call = calls.next()
            let replies = try pair.replies(call)
            try #require(replies.server == replies.model, "call \(number): \(call)")
        }
    }
}

extension RedisValue {
    fileprivate var text: String {
        switch self {
        case .blobString(let bytes), .simpleString(let bytes), .verbatimString(_, let bytes):
            String(decoding: bytes, as: UTF8.self)
        default: ""
        }
    }

    /// Clients come in any order, and lifetimes pass: only whether there is one counts.
    fileprivate var comparable: String {
        switch self {
        case .array(let elements): ModelReply.comparable(elements.map(\.comparable))
        case .number(let number): ModelReply.comparable(Int(number))
        case .error(let error): "error \(error.codeWord)"
        default: self.text
        }
    }
}

extension ModelReply {
    fileprivate static func comparable(_ elements: [String]) -> String {
        let areClients = !elements.isEmpty && elements.allSatisfy { $0.hasPrefix("info of") }
        return "[\((areClients ? elements.sorted() : elements).joined(separator: ", "))]"
    }

    fileprivate static func comparable(_ number: Int) -> String { number > 1_000_000 ? "lasts" : "\(number)" }

    fileprivate var comparable: String {
        switch self {
        case .simple(let text), .blob(let text): text
        case .error(let text): "error \(text.prefix { $0 != " " })"
        case .integer(let number): Self.comparable(number)
        case .array(let elements), .push(let elements): Self.comparable(elements.map(\.comparable))
        case .map: "map"
        }
    }
}
