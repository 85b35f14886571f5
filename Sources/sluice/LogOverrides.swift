import GatewayCore

/// Log settings given on the command line, which win over the file's.
struct LogOverrides: Sendable, Equatable {
    var format: LogSettings.Format?
    var level: LogSettings.Level?

    func apply(to configuration: inout GatewayConfiguration) {
        if let format { configuration.log.format = format }
        if let level { configuration.log.level = level }
    }
}
