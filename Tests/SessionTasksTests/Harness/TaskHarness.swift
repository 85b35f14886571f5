import ByteKernels
import SessionTasks
import SimulatedNetwork
import StreamTransport
import TestSupport
import Testing

/// One loop with tasks on it and a program of scripted peers, on either testbed.
final class TaskHarness {
    typealias Kind = TransportTestbed.Kind

    let testbed: TransportTestbed
    let loop: Loop
    let host: ScriptedHost
    let acceptor = Acceptor()
    /// Where tasks are accepted.
    let listener: SocketListener
    /// Where scripted peers accept tasks that open.
    let peers: ScriptedListener

    init(_ kind: Kind, seed: UInt64 = 1, faults: FaultPlan = .calm) throws {
        self.testbed = TransportTestbed(kind, seed: seed, faults: faults)
        self.loop = try self.testbed.makeLoop()
        self.host = try self.testbed.makeHost()
        let anywhere = SocketAddress.ipv4(address: 0x7f00_0001, port: 0)
        self.listener = try SocketListener(anywhere, on: self.loop, owner: self.acceptor)
        self.peers = try self.host.listen(at: anywhere)
    }

    func run(atMost limit: Duration = .seconds(10), until condition: () -> Bool) -> Bool {
        self.testbed.run(until: condition, atMost: limit)
    }

    func perform(_ body: @escaping () -> Void) {
        self.testbed.perform(on: self.loop, body)
    }

    func settle() {
        self.testbed.settle()
    }

    /// The task of an accepted connection, and its peer.
    func accepted() throws -> (task: StreamTask, peer: ScriptedPeer) {
        let (transport, peer) = try self.acceptedTransport()
        return (StreamTask(adopting: transport), peer)
    }

    func acceptedTransport() throws -> (transport: SocketConnection, peer: ScriptedPeer) {
        let before = self.acceptor.connections.count
        let peer = try self.host.connect(to: self.listener.address)
        #expect(self.run { peer.isConnected && self.acceptor.connections.count > before })
        return (try #require(self.acceptor.connections.last), peer)
    }

    /// A task that connected, and its peer.
    func opened() throws -> (task: StreamTask, peer: ScriptedPeer) {
        let task = StreamTask(to: OpeningTarget(.address(self.peers.address)), on: self.loop)
        let before = self.peers.accepted.count
        self.perform { task.resumeOnLoop() }
        #expect(self.run { self.peers.accepted.count > before && task.record.openedAt != nil })
        return (task, try #require(self.peers.accepted.last))
    }

    /// In either role.
    func stream(_ role: TaskRole) throws -> (task: StreamTask, peer: ScriptedPeer) {
        switch role {
        case .opened: try self.opened()
        case .accepted: try self.accepted()
        }
    }

    /// Both ends of a connection on one loop: the opened and the accepted one.
    func transportPair() throws -> (opened: SocketConnection, accepted: SocketConnection) {
        let before = self.acceptor.connections.count
        var opened: SocketConnection?
        self.perform {
            _ = ConnectAttempt(.address(self.listener.address), on: self.loop, timeout: .seconds(5)) { result in
                opened = try? result.get()
            }
        }
        #expect(self.run { opened != nil && self.acceptor.connections.count > before })
        return (try #require(opened), try #require(self.acceptor.connections.last))
    }

    func streamPair() throws -> (opened: StreamTask, accepted: StreamTask) {
        let pair = try self.transportPair()
        var tasks: (StreamTask, StreamTask)?
        self.perform { tasks = (StreamTask(adopting: pair.opened), StreamTask(adopting: pair.accepted)) }
        return try #require(tasks)
    }

    /// Closes what listens; expects that nothing was done wrong and nothing is left open.
    func finish(sourceLocation: SourceLocation = #_sourceLocation) {
        self.perform { self.listener.close() }
        self.host.close()
        self.settle()
        if let network = self.testbed.network { _ = network.run(for: .seconds(20)) }
        #expect(self.loop.watchedCount == 0, "\(self.testbed.report)", sourceLocation: sourceLocation)
        #expect(self.testbed.close() == [], sourceLocation: sourceLocation)
    }
}

/// How a task came about.
enum TaskRole: CaseIterable {
    case opened
    case accepted
}

/// One testbed and one role.
struct TaskVariant: Hashable, CustomTestStringConvertible {
    let kind: TransportTestbed.Kind
    let role: TaskRole

    static let all = TransportTestbed.Kind.allCases.flatMap { kind in
        TaskRole.allCases.map { TaskVariant(kind: kind, role: $0) }
    }

    var testDescription: String { "\(self.role) on \(self.kind)" }
}

extension [UInt8] {
    /// Bytes in which missing or moved ones are detected.
    static func pattern(_ count: Int) -> [UInt8] {
        // Made from one period, because debug builds compute byte by byte slowly.
        let period = (0..<Swift.min(count, 65_536)).map { UInt8(truncatingIfNeeded: ($0 &* 31) ^ ($0 >> 8)) }
        var bytes: [UInt8] = []
        bytes.reserveCapacity(count + period.count)
        while bytes.count < count { bytes += period }
        return Array(bytes.prefix(count))
    }
}
