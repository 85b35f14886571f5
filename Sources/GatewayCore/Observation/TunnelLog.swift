import Cluster
import GatewayConfiguration
import SessionTasks
import StreamTransport
import Synchronization

/// The gateway's log: one line when a connection reaches its endpoint, and one when it ends.
package final class TunnelLog: Sendable {
    private let writer: LogWriter
    private let settings: LogSettings

    /// - Parameter writer: takes the lines; by default it writes to standard error.
    package init(_ settings: LogSettings, writer: LogWriter? = nil) {
        self.settings = settings
        let format = settings.format
        self.writer = writer ?? LogWriter(notice: { Self.dropNotice($0).rendered(format, at: WallClock.now()) })
    }

    /// Reports the lines dropped because the log's reader was too slow.
    private static func dropNotice(_ count: Int) -> LogLine {
        LogLine("log lines dropped", [("count", .number(UInt64(max(0, count))))], level: .warning)
    }

    private func writes(_ level: LogSettings.Level) -> Bool {
        let order = LogSettings.Level.allCases
        return (order.firstIndex(of: level) ?? 0) >= (order.firstIndex(of: self.settings.level) ?? 0)
    }

    private var logsConnections: Bool {
        self.writes(.info)
    }

    /// Logs a message about the gateway as a whole.
    package func log(_ text: String, level: LogSettings.Level = .notice) {
        self.write(LogLine("note", [("text", .text(text))], level: level))
    }

    func acceptingPaused(_ listener: String, _ error: SystemError) {
        let fields: [(String, LogLine.Value)] = [("listener", .text(listener)), ("reason", .text("\(error)"))]
        self.write(LogLine("accepting paused", fields, level: .warning))
    }

    /// The Redis of a cluster is lost, or reached again.
    func redis(isAway: Bool, _ text: String) {
        self.write(
            isAway
                ? LogLine("redis lost", [("reason", .text(text))], level: .warning)
                : LogLine("redis reached", [], level: .notice))
    }

    /// The node's part in its cluster. That Redis is lost, the rooms say.
    func cluster(_ event: RedisBusEvent, node: String) {
        switch event {
        case .registered: self.write(LogLine("cluster joined", [("node", .text(node))], level: .notice))
        case .nameTaken(let instance):
            self.write(
                LogLine(
                    "cluster name taken", [("node", .text(node)), ("instance", .text(instance))], level: .error))
        case .refused(let reason):
            self.write(LogLine("cluster not joined", [("reason", .text(reason))], level: .warning))
        case .away: break
        case .reported(let text): self.write(LogLine("redis reported", [("reason", .text(text))], level: .debug))
        }
    }

    /// Only in debug builds.
    func slowWork(_ work: SlowWork) {
        let microseconds = UInt64(max(0, work.duration.clampedNanoseconds / 1000))
        let fields: [(String, LogLine.Value)] = [
            ("worker", .text(work.worker)), ("durationUs", .number(microseconds)),
        ]
        self.write(LogLine("slow work on a loop", fields, level: .debug))
    }

    func opened(_ context: ConnectionContext) {
        guard self.logsConnections else { return }
        self.write(LogLine("connection opened", Self.fields(of: context)))
    }

    /// Logs a change made through the control plane.
    package func audit(
        operation: String, path: String, caller: String, peer: String, status: Int, code: String?
    ) {
        var fields: [(String, LogLine.Value)] = [
            ("operation", .text(operation)), ("path", .text(path)), ("caller", .text(caller)), ("peer", .text(peer)),
            ("status", .number(UInt64(max(0, status)))),
        ]
        if let code { fields.append(("code", .text(code))) }
        self.write(LogLine("control", fields, level: .notice))
    }

    func closed(
        _ context: ConnectionContext, _ reason: TerminationReason, detail: String?, downstream: TaskRecord?,
        upstream: TaskRecord?, at now: MonotonicInstant
    ) {
        guard self.logsConnections else { return }
        var fields = Self.fields(of: context)
        if case .accepted = context.origin {
            fields += Self.fields(downstream, upstream, since: context.createdAt, now)
        }
        fields.append(("reason", .text(reason.description)))
        if let detail { fields.append(("detail", .text(detail))) }
        self.write(LogLine("connection closed", fields))
    }

    /// Traffic and duration.
    private static func fields(
        _ downstream: TaskRecord?, _ upstream: TaskRecord?, since createdAt: MonotonicInstant, _ now: MonotonicInstant
    ) -> [(String, LogLine.Value)] {
        // A stream has no messages: then the other side's count is the tunnel's.
        let towardUpstream = max(downstream?.messagesReceived ?? 0, upstream?.messagesSent ?? 0)
        let towardDownstream = max(downstream?.messagesSent ?? 0, upstream?.messagesReceived ?? 0)
        let milliseconds = createdAt.duration(to: now).clampedNanoseconds / 1_000_000
        return [
            // Each direction as its sender counts it: bytes from the client, and bytes from the upstream or from us.
            ("bytesTowardUpstream", .number(downstream?.bytesReceived ?? 0)),
            ("bytesTowardDownstream", .number(downstream?.bytesSent ?? 0)),
            ("messagesTowardUpstream", .number(towardUpstream)),
            ("messagesTowardDownstream", .number(towardDownstream)),
            ("durationMs", .number(UInt64(max(0, milliseconds)))),
        ]
    }

    private static func fields(of context: ConnectionContext) -> [(String, LogLine.Value)] {
        var fields: [(String, LogLine.Value)] = [("id", .number(context.identifier))]
        switch context.origin {
        case .accepted(let listener, let peer):
            fields += [("listener", .text(listener)), ("client", .text("\(context.client)"))]
            if context.client != peer { fields.append(("peer", .text("\(peer)"))) }
            if let user = context.user { fields.append(("user", .text(user))) }
            if let route = context.routeName { fields.append(("route", .text(route))) }
            if let upstream = context.endpointURL { fields.append(("upstream", .text(upstream))) }
        case .requested(let url, let upstreamURL):
            fields.append(("url", .text(url)))
            if let upstreamURL { fields.append(("upstream", .text(upstreamURL))) }
        }
        return fields
    }

    private func write(_ line: LogLine) {
        guard self.writes(line.level) else { return }
        self.writer.log(line.rendered(self.settings.format, at: WallClock.now()))
    }

    /// Waits until all lines are written, or briefly if the reader takes none.
    package func flush() {
        self.writer.flush()
    }
}
