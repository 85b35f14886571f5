import DequeModule
import RedisEngine
import SessionTasks
import StreamTransport

package typealias RedisCompletion = (Result<RedisValue, RedisClientError>) -> Void

/// A server's address.
enum RedisServerAddress: Hashable, CustomStringConvertible {
    case endpoint(RedisEndpoint)
    case unixSocket(path: String)

    var description: String {
        switch self {
        case .endpoint(let endpoint): endpoint.description
        case .unixSocket(let path): path
        }
    }
}

/// Settings and state shared by the links of one client.
final class RedisContext {
    let loop: Loop
    let settings: RedisClientSettings
    let usesTLS: Bool
    let counters: RedisCounters
    let later: DeferredCalls
    var generator: any RandomNumberGenerator

    init(
        _ settings: RedisClientSettings, usesTLS: Bool, counters: RedisCounters, loop: Loop,
        generator: any RandomNumberGenerator
    ) {
        self.loop = loop
        self.settings = settings
        self.usesTLS = usesTLS
        self.counters = counters
        self.later = DeferredCalls(on: loop)
        self.generator = generator
    }

    /// - Returns: `nil` where TLS is demanded and there are no settings for it.
    func target(_ address: RedisServerAddress) -> OpeningTarget? {
        var target: OpeningTarget
        switch address {
        case .unixSocket(let path): target = OpeningTarget(.address(.unix(path: path)))
        case .endpoint(let endpoint):
            target = OpeningTarget(.host(endpoint.host, port: UInt16(clamping: endpoint.port)))
        }
        target.connectTimeout = self.settings.connectTimeout
        guard self.usesTLS, case .endpoint(let endpoint) = address else { return target }
        guard let context = self.settings.secure else { return nil }
        var secure = SecureSettings(context: context, serverName: self.settings.serverName ?? endpoint.host)
        secure.timeout = self.settings.connectTimeout
        secure.resumptionKey = endpoint.description
        target.secure = secure
        return target
    }

    /// Arms a timer, `timeout` from now.
    func arm(_ timer: LoopTimer, after timeout: Duration, target: any TimerTarget) {
        // A pause drawn at random is no whole number of nanoseconds. Rounded down, the timer would fire too early, and
        // again and again in the same turn.
        self.loop.arm(timer, after: max(.zero, timeout) + .nanoseconds(1), target: target)
    }

    /// Fails a command that no connection accepts, in the next turn.
    func refuse(_ completion: @escaping RedisCompletion) {
        self.counters.wasRefused()
        self.later.add { completion(.failure(.notSent)) }
    }
}

/// Calls that must not be made within the call that caused them: made in the next turn, in their order.
final class DeferredCalls {
    private let loop: Loop
    private var calls: Deque<() -> Void> = []

    init(on loop: Loop) {
        self.loop = loop
    }

    func add(_ call: @escaping () -> Void) {
        if self.calls.isEmpty { self.loop.inNextTurn(self) }
        self.calls.append(call)
    }
}

extension DeferredCalls: TurnEndTarget {
    func turnEnded() {
        // Calls added meanwhile are for the next turn.
        for _ in 0..<self.calls.count where !self.loop.budgetIsSpent {
            self.loop.spend(TurnBudget.frame)
            self.calls.first?()
            self.calls.removeFirst()
        }
        if !self.calls.isEmpty { self.loop.inNextTurn(self) }
    }
}
