import Cluster
import DequeModule
import Synchronization

/// Commands of one client without a WebSocket, as nodes send them to the node that has the client's response.
package struct ForwardedCommands: Sendable, Equatable {
    /// Longest secret, in bytes of UTF-8.
    static let sessionLimit = 255

    /// Secret of the client: 1 to 255 bytes.
    package var session: String
    package var data: [UInt8]

    package init(session: String, data: [UInt8]) {
        self.session = session
        self.data = data
    }

    /// For each: length of the secret in 1 byte, the secret, length of the data in 4 bytes with the highest first, the data.
    package static func encoded(_ all: [ForwardedCommands]) -> [UInt8] {
        var bytes: [UInt8] = []
        for commands in all {
            bytes.append(UInt8(clamping: commands.session.utf8.count))
            bytes += commands.session.utf8.prefix(Self.sessionLimit)
            for shift in stride(from: 24, through: 0, by: -8) {
                bytes.append(UInt8(truncatingIfNeeded: commands.data.count >> shift))
            }
            bytes += commands.data
        }
        return bytes
    }

    /// - Returns: `nil` for bytes that are no such commands.
    package static func decoded(_ bytes: [UInt8]) -> [ForwardedCommands]? {
        var all: [ForwardedCommands] = []
        var rest = bytes[...]
        while let length = rest.popFirst() {
            guard length > 0, rest.count >= Int(length) + 4 else { return nil }
            guard let session = String(validating: rest.prefix(Int(length)), as: UTF8.self) else { return nil }
            rest = rest.dropFirst(Int(length))
            let count = rest.prefix(4).reduce(0) { $0 << 8 | Int($1) }
            rest = rest.dropFirst(4)
            guard rest.count >= count else { return nil }
            all.append(ForwardedCommands(session: session, data: Array(rest.prefix(count))))
            rest = rest.dropFirst(count)
        }
        return all
    }
}

/// Outcome of commands for a client without a WebSocket.
package enum CommandsOutcome: UInt8, Sendable {
    /// The client's node performs them.
    case accepted = 1
    case unknownSession = 2
    /// More commands of the client wait than may.
    case overflowed = 3
    case unknownNode = 4
    /// The node, or the server that connects the nodes, did not answer. The commands may still be performed.
    case unreachable = 5
    /// Too many commands for the node wait. These were not sent.
    case busy = 6

    /// Whether the node that has the client may answer this.
    fileprivate var isAnswer: Bool { self.rawValue <= Self.overflowed.rawValue }
}

/// Sends commands of clients without a WebSocket to the nodes that have the clients' responses.
///
/// Commands for one node are sent in the order in which they came: one call at a time carries those that wait. None is sent
/// twice. When a node does not answer, those that wait for it fail too, so that none overtakes those that were lost.
package final class CommandForwarder: Sendable {
    package typealias Call =
        @Sendable (_ node: String, _ content: [UInt8], _ timeout: Duration) async throws(ClusterError) -> [UInt8]

    /// Cost of the commands that wait for one node, in bytes.
    package static let nodeLimit = 4 << 20
    /// Cost of the commands of one client that wait, in bytes.
    package static let clientLimit = EmulatedInboxes.limit
    /// Nodes to which commands are sent at the same time; names that clients make up are among them until the bus knows
    /// that there is no such node.
    private static let lanesLimit = 128
    /// Cost of the commands in one call, in bytes, from which on no further ones are added.
    private static let batchSize = 256 << 10
    /// Cost of commands besides their bytes.
    private static let overhead = 512
    /// Longest name of a node, in bytes.
    private static let nameLimit = 255

    private struct Waiting {
        let commands: ForwardedCommands
        let deadline: ContinuousClock.Instant
        let complete: @Sendable (CommandsOutcome) -> Void

        var cost: Int { self.commands.data.count + CommandForwarder.overhead }
    }

    /// Commands that wait for one node.
    private struct Lane {
        private var waiting: Deque<Waiting> = []
        private var cost = 0
        private var costs: [String: Int] = [:]

        /// - Returns: why the commands are not added.
        mutating func add(_ one: Waiting) -> CommandsOutcome? {
            let own = self.costs[one.commands.session, default: 0] + one.cost
            guard own <= CommandForwarder.clientLimit else { return .overflowed }
            guard self.cost + one.cost <= CommandForwarder.nodeLimit else { return .busy }
            self.costs[one.commands.session] = own
            self.cost += one.cost
            self.waiting.append(one)
            return nil
        }

        /// - Parameter limit: cost from which on no further commands are taken.
        mutating func takeBatch(_ limit: Int) -> [Waiting] {
            var batch: [Waiting] = []
            var size = 0
            while size < limit, let one = self.waiting.popFirst() {
                let rest = self.costs[one.commands.session, default: 0] - one.cost
                self.costs[one.commands.session] = rest > 0 ? rest : nil
                self.cost -= one.cost
                size += one.cost
                batch.append(one)
            }
            return batch
        }
    }

    /// Name of this node.
    let node: String
    private let timeout: Duration
    private let call: Call
    /// By node; a lane is there while a task sends its commands.
    private let lanes = Mutex<[String: Lane]>([:])

    /// - Parameters:
    ///   - timeout: how long commands wait to be sent, and then for the answer.
    ///   - call: sends a message to another node and waits for its answer.
    package init(node: String, timeout: Duration, call: @escaping Call) {
        self.node = node
        self.timeout = timeout
        self.call = call
    }

    /// Sends commands to the node that a client named.
    /// - Parameter complete: called once, after twice the timeout at the latest; perhaps before this returns.
    package func forward(
        _ commands: ForwardedCommands, to node: String, _ complete: @escaping @Sendable (CommandsOutcome) -> Void
    ) {
        guard node != self.node, (1...Self.nameLimit).contains(node.utf8.count),
            (1...ForwardedCommands.sessionLimit).contains(commands.session.utf8.count)
        else { return complete(node == self.node ? .unknownSession : .unknownNode) }
        let one = Waiting(commands: commands, deadline: .now.advanced(by: self.timeout), complete: complete)
        let (isFirst, refusal) = self.lanes.withLock { lanes -> (Bool, CommandsOutcome?) in
            guard lanes[node] != nil || lanes.count < Self.lanesLimit else { return (false, .busy) }
            let isFirst = lanes[node] == nil
            var lane = lanes.removeValue(forKey: node) ?? Lane()
            let refusal = lane.add(one)
            if !isFirst || refusal == nil { lanes[node] = lane }
            return (isFirst, refusal)
        }
        if let refusal { return complete(refusal) }
        if isFirst { Task { await self.sendAll(to: node) } }
    }

    /// Sends commands to a node, one call after another, until none is queued.
    private func sendAll(to node: String) async {
        while let batch = self.take(for: node, atMost: Self.batchSize) {
            let now = ContinuousClock.now
            for one in batch where one.deadline <= now { one.complete(.unreachable) }
            let timely = batch.filter { $0.deadline > now }
            guard !timely.isEmpty, let failure = await self.send(timely, to: node) else { continue }
            for one in timely + self.takeWaiting(for: node) { one.complete(failure) }
        }
    }

    /// - Returns: `nil` if nothing waits; the next commands are the first then.
    private func take(for node: String, atMost size: Int) -> [Waiting]? {
        self.lanes.withLock { lanes in
            let batch = lanes[node]?.takeBatch(size) ?? []
            guard batch.isEmpty else { return batch }
            lanes[node] = nil
            return nil
        }
    }

    private func takeWaiting(for node: String) -> [Waiting] {
        self.lanes.withLock { $0[node]?.takeBatch(.max) ?? [] }
    }

    /// - Returns: why the node gave no answer.
    private func send(_ batch: [Waiting], to node: String) async -> CommandsOutcome? {
        do throws(ClusterError) {
            let answer = try await self.call(node, ForwardedCommands.encoded(batch.map(\.commands)), self.timeout)
            let outcomes = answer.compactMap(CommandsOutcome.init(rawValue:)).filter(\.isAnswer)
            // A node of another version may not know what this is.
            guard outcomes.count == batch.count else { return .unreachable }
            for (one, outcome) in zip(batch, outcomes) { one.complete(outcome) }
            return nil
        } catch {
            switch error {
            case .unknownNode: return .unknownNode
            case .away, .refused, .timeout, .tooLarge: return .unreachable
            case .busy: return .busy
            }
        }
    }
}

extension RoomHub {
    /// Brings commands to the loop of their client.
    func receive(_ commands: ForwardedCommands) -> CommandsOutcome {
        let session = commands.session
        switch self.emulatedInboxes.add(commands.data, to: session) {
        case .added(let loop, let isAnnounced):
            if !isAnnounced { self.onLoop(loop) { $0.emulated[session]?.takeCommands() } }
            return .accepted
        case .unknownClient: return .unknownSession
        case .overflowed(let loop):
            self.onLoop(loop) { $0.emulated[session]?.inboxOverflowed() }
            return .overflowed
        }
    }

    /// Answers another node that sends commands.
    /// - Returns: an outcome for each; empty for bytes that are no commands.
    func receiveCommands(_ content: [UInt8]) -> [UInt8] {
        (ForwardedCommands.decoded(content) ?? []).map { self.receive($0).rawValue }
    }
}
