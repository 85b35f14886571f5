import GatewayCore
import StreamTransport

/// What the process says on standard output once it is up.
enum Announcement {
    static func print(
        _ places: [Gateway.Place], _ configuration: GatewayConfiguration, source: ConfigurationSource, control: String?
    ) {
        var lines = places.map { "listening on \(Self.url($0, configuration))" }
        if let control { lines.append("control on \(control)") }
        if case .builtIn = source, let web = places.first { lines += Self.firstSteps(web) }
        lines.append("ready")
        // In one piece, so that a reader who waits for a line never sees half of it.
        ProcessOutput.print(lines.joined(separator: "\n") + "\n")
    }

    /// With the path where only one leads anywhere, so that the URL can be used as it stands.
    private static func url(_ place: Gateway.Place, _ configuration: GatewayConfiguration) -> String {
        let kind = place.listener.kind
        let paths = configuration.routes.filter { configuration.serves($0, on: place.listener) }.compactMap(\.path)
        let path = paths.count == 1 && paths[0].parameters.isEmpty ? "\(paths[0])" : "/"
        switch place.address {
        case .unix(let path): return kind == .unix ? "unix://\(path)" : "\(kind.rawValue)+unix://\(path)"
        case .ipv4, .ipv6: return "\(kind.rawValue)://\(place.address)" + (kind.speaksWebSocket ? path : "")
        }
    }

    /// Works from the folder the process was started in, with what a machine has anyway before what must be installed.
    private static func firstSteps(_ web: Gateway.Place) -> [String] {
        let program = CommandLine.arguments.first ?? "sluice"
        return [
            "",
            "try, each in a terminal of its own:",
            "  \(program) bridge tcp://127.0.0.1:7000 ws://\(web.address)/echo",
            "      a TCP port in front of it: what you send to port 7000 comes back",
            "  \(program) connect ws://\(web.address)/echo",
            "      what you type comes back",
            "  \(program) connect ws://\(web.address)/chat/lobby",
            "      in two terminals: one hears the other",
            "",
        ]
    }
}
