import GatewayCore
import Logging

/// Leads what the HTTP server logs into the gateway's own log.
struct GatewayLogHandler: LogHandler {
    let log: TunnelLog
    var metadata: Logger.Metadata = [:]
    var logLevel = Logger.Level.warning

    init(log: TunnelLog) {
        self.log = log
    }

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { self.metadata[key] }
        set { self.metadata[key] = newValue }
    }

    func log(event: LogEvent) {
        let more = (event.metadata ?? [:]).sorted { $0.key < $1.key }.map { " \($0.key)=\($0.value)" }.joined()
        self.log.note("control plane: \(event.message)\(more)", level: LogSettings.Level(event.level))
    }
}

extension LogSettings.Level {
    init(_ level: Logger.Level) {
        self = LogSettings.Level(rawValue: level.rawValue) ?? .info
    }
}
