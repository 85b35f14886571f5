import ArgumentParser
import ControlClient
import GatewayCore

/// Options that say which connections are meant. Of several values of one, any; of several options, all must hold.
struct SelectionOptions: ParsableArguments {
    @Option(
        parsing: .singleValue,
        help: ArgumentHelp("stream or ws, as in the table; ws is also webSocket.", valueName: "kind"),
        completion: .list(["stream", "ws"]))
    var kind: [String] = []

    @Option(
        parsing: .singleValue,
        help: ArgumentHelp(
            "opening, open, closing, closed, or any. (default: all but closed)", valueName: "state"),
        completion: .list(["opening", "open", "closing", "closed", "any"]))
    var state: [String] = []

    @Option(
        help: ArgumentHelp("accepted by a listener, or opened by the gateway.", valueName: "accepted|opened"),
        completion: .list(["accepted", "opened"]))
    var direction: String?

    @Option(parsing: .singleValue, help: ArgumentHelp("Name of the listener.", valueName: "name"))
    var listener: [String] = []

    @Option(parsing: .singleValue, help: ArgumentHelp("Name of the route.", valueName: "name"))
    var route: [String] = []

    @Option(parsing: .singleValue, help: ArgumentHelp("Name of the upstream.", valueName: "name"))
    var upstream: [String] = []

    @Option(
        parsing: .singleValue,
        help: ArgumentHelp("Address of the peer, with its port or without.", valueName: "address"))
    var peer: [String] = []

    @Option(
        parsing: .singleValue,
        help: ArgumentHelp(
            "A label that it must have. Repeat: all of them.", valueName: "name[=value]"))
    var label: [String] = []

    @Option(help: ArgumentHelp("Open for at least this long, like 5m.", valueName: "duration"))
    var minAge: String?

    @Option(help: ArgumentHelp("Open for at most this long.", valueName: "duration"))
    var maxAge: String?

    @Option(help: ArgumentHelp("Without data for at least this long.", valueName: "duration"))
    var minIdle: String?

    @Flag(help: "Only those whose data has nowhere to go just now.")
    var stalled = false

    func selection(_ reader: inout OptionReader) -> ConnectionSelection {
        var selection = ConnectionSelection()
        selection.kinds = self.kind
        selection.states = self.state
        selection.direction = self.direction
        selection.listeners = self.listener
        selection.routes = self.route
        selection.upstreams = self.upstream
        selection.peers = self.peer
        selection.labels = self.label
        let span = ValueSyntax<Duration>.duration(.zero ... .seconds(86400 * 365))
        selection.minimumAge = reader.value("--min-age", self.minAge, span)
        selection.maximumAge = reader.value("--max-age", self.maxAge, span)
        selection.minimumIdle = reader.value("--min-idle", self.minIdle, span)
        selection.isStalled = self.stalled
        return selection
    }
}
