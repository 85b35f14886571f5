import Cluster
import RedisEngine
import StreamTransport
import TestSupport
import Testing

/// A client on a loop of its own, and everything that its delegate and its completions were called with.
final class RedisClientHarness: RedisClientDelegate {
    enum Event: Equatable {
        case ready
        case away(String)
        case subscribed(String)
        case received(String, on: String)
        case reply(String, Result<RedisValue, RedisClientError>)
        case reported(String)
    }

    let testbed: TransportTestbed
    let loop: Loop
    let client: RedisClient
    private(set) var events: [Event] = []
    /// Called before each look at a condition.
    var serve: () -> Void = {}
    /// Called with each event, when it is recorded.
    var react: (Event) -> Void = { _ in }

    init(
        _ address: String, on testbed: TransportTestbed, settings: RedisClientSettings = RedisClientSettings(),
        scripts: [RedisScript] = []
    ) throws {
        self.testbed = testbed
        self.loop = try testbed.makeLoop()
        self.client = RedisClient(
            address: try RedisAddress(address), settings: settings, scripts: scripts, loop: self.loop,
            generator: SeededGenerator(seed: 7))
        self.client.delegate = self
    }

    private func record(_ event: Event) {
        self.events.append(event)
        self.react(event)
    }

    func redisBecameReady(_ client: RedisClient) { self.record(.ready) }
    func redisWentAway(_ client: RedisClient, _ failure: String) { self.record(.away(failure)) }
    func redisReported(_ client: RedisClient, _ text: String) { self.record(.reported(text)) }

    func redisSubscribed(_ client: RedisClient, to channel: [UInt8]) {
        self.record(.subscribed(String(decoding: channel, as: UTF8.self)))
    }

    func redisReceived(_ client: RedisClient, _ payload: [UInt8], on channel: [UInt8]) {
        self.record(
            .received(String(decoding: payload, as: UTF8.self), on: String(decoding: channel, as: UTF8.self)))
    }

    func perform(_ name: String, _ arguments: RedisArgument..., as label: String? = nil, timeout: Duration? = nil) {
        self.client.perform(RedisCommand(name, arguments), key: nil, timeout: timeout) { result in
            self.record(.reply(label ?? name, result))
        }
    }

    func perform(_ script: RedisScript, as label: String) {
        self.client.perform(script, keys: [Array("k".utf8)], arguments: []) { self.record(.reply(label, $0)) }
    }

    /// Runs `body` in a turn of the loop.
    func act(_ body: @escaping () -> Void) {
        self.testbed.perform(on: self.loop, body)
    }

    /// - Parameter limit: virtual time on the simulated network, real time on sockets. Default: 30 s of virtual time, and
    ///   240 s of real time, since the machine may be slow.
    /// - Returns: whether the condition came true within `limit`.
    func run(atMost limit: Duration? = nil, until condition: () -> Bool) -> Bool {
        self.testbed.run(
            until: {
                self.serve()
                return condition()
            }, atMost: limit ?? (self.testbed.kind == .simulation ? .seconds(30) : .seconds(240)))
    }

    /// Runs until nothing is in flight any more.
    func settle() {
        for _ in 0..<4 {
            self.serve()
            self.testbed.settle()
        }
    }

    func has(_ event: Event) -> Bool { self.events.contains(event) }
    func count(_ event: Event) -> Int { self.events.count { $0 == event } }
    func result(_ label: String) -> Result<RedisValue, RedisClientError>? {
        for case .reply(label, let result) in self.events { return result }
        return nil
    }
}

extension Result where Success == RedisValue, Failure == RedisClientError {
    /// The text of a successful reply.
    var text: String? { try? self.get().text() }
}
