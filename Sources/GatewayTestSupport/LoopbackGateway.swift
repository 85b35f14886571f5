import Cluster
import ControlPlane
import GatewayConfiguration
import GatewayCore
import StreamTransport
import Synchronization

/// A gateway with its control plane in this process, both on free ports of the loopback address.
package final class LoopbackGateway: Sendable {
    /// Listener `web` with `/echo` and `/chat/{room}`, listener `raw` that echoes a stream, and a control plane that
    /// may open connections to them.
    package static let echo = """
        listeners:
          - {name: web, listen: 'ws://127.0.0.1:0'}
          - {name: raw, listen: 'tcp://127.0.0.1:0', route: raw}
        routes:
          - {name: echo, path: /echo, target: echo}
          - {name: chat, path: '/chat/{room}', target: chat}
          - {name: raw, target: echo}
        control:
          address: http://127.0.0.1:0
          targets: [127.0.0.1]

        """

    /// The gateway of the current test, in a suite with the trait `gateway`.
    @TaskLocal package static var current: LoopbackGateway?

    /// URL of the control plane, like `http://127.0.0.1:49152`.
    package let control: String
    private let group: LoopGroup
    package let gateway: Gateway
    private let server: ControlServer
    private let ports: [String: UInt16]
    private let lines: LogLines
    private let writer: LogWriter
    private let file: ConfigurationText

    /// Runs `body` with a gateway of this configuration, and stops it afterwards.
    /// - Parameter bus: connects it with the other nodes of a cluster.
    package static func run<Value>(
        _ configuration: String = LoopbackGateway.echo, bus: (any ClusterBus)? = nil,
        limits: GatewayCluster.Limits = .init(), _ body: (LoopbackGateway) async throws -> Value
    ) async throws -> Value {
        let running = try await LoopbackGateway(configuration, bus, limits)
        let result: Result<Value, any Error>
        do {
            result = .success(try await body(running))
        } catch {
            result = .failure(error)
        }
        await running.stop()
        return try result.get()
    }

    private init(_ text: String, _ bus: (any ClusterBus)?, _ limits: GatewayCluster.Limits) async throws {
        let located = try ConfigurationReader.read([UInt8](text.utf8), file: "sluice.yaml")
        let lines = LogLines()
        let file = ConfigurationText(text)
        self.lines = lines
        self.file = file
        let writer = LogWriter(onOwnThread: false, write: lines.add)
        self.writer = writer
        let log = TunnelLog(located.configuration.log, writer: writer)
        self.group = try LoopGroup(count: 1)
        self.gateway = try Gateway(
            loops: self.group.loops, log: log, configuration: located.configuration, bus: bus, clusterLimits: limits)
        let bound = try await self.gateway.start(try GatewayPlan(located.configuration))
        self.ports = Dictionary(
            bound.compactMap { each in each.address.port.map { (each.listener.name, $0) } },
            uniquingKeysWith: { first, _ in first })
        var settings = RunningConfiguration.Settings()
        settings.read = { try ConfigurationReader.read([UInt8](file.text.utf8), file: "sluice.yaml") }
        self.server = try ControlServer(
            located.configuration.control, gateway: self.gateway,
            configuration: RunningConfiguration(located, gateway: self.gateway, settings: settings), log: log,
            version: "0.1.0")
        self.control = try await self.server.start()
        self.server.phase = .ready
    }

    private func stop() async {
        await self.server.stop()
        await self.gateway.abandon()
        await self.gateway.leaveCluster()
        self.group.stop()
    }

    /// The phase that the probes report.
    package var phase: ServicePhase {
        get { self.server.phase }
        set { self.server.phase = newValue }
    }

    /// The document that the next reload reads.
    package func setFile(_ text: String) {
        self.file.text = text
    }

    /// The port of a listener.
    package func port(_ listener: String) -> UInt16 {
        self.ports[listener] ?? 0
    }

    /// URL of the WebSocket echo.
    package var echo: String { "ws://127.0.0.1:\(self.port("web"))/echo" }

    /// URL of the stream echo.
    package var raw: String { "tcp://127.0.0.1:\(self.port("raw"))" }

    /// A condition that did not come true.
    package struct TimedOut: Error {}

    /// Evaluates `condition` until it holds, for at most 120 s: machines that run other tests meanwhile are slow.
    /// - Throws: `TimedOut`.
    package func wait(until condition: () async throws -> Bool) async throws {
        let deadline = ContinuousClock.now.advanced(by: .seconds(120))
        while try await !condition() {
            guard ContinuousClock.now < deadline else { throw TimedOut() }
            // A condition that never suspends would keep the thread from the tasks that make it true.
            await Task.yield()
        }
    }

    /// Lines of the log, so far. One thread writes the lines of others, too, so the last may not be written when their
    /// request is answered.
    package var log: [String] {
        self.writer.flush(within: .seconds(120))
        return self.lines.all
    }
}

/// The text of the configuration file.
private final class ConfigurationText: Sendable {
    private let content: Mutex<String>

    init(_ text: String) {
        self.content = Mutex(text)
    }

    var text: String {
        get { self.content.withLock { $0 } }
        set { self.content.withLock { $0 = newValue } }
    }
}

/// Keeps what a gateway logs.
private final class LogLines: Sendable {
    private let bytes = Mutex<[UInt8]>([])

    func add(_ more: [UInt8]) {
        self.bytes.withLock { $0 += more }
    }

    var all: [String] {
        self.bytes.withLock { String(decoding: $0, as: UTF8.self) }.split(separator: "\n").map(String.init)
    }
}
