import ArgumentParser
import CommandLineText
import ControlAPI
import ControlClient
import GatewayCore
import StreamTransport
import WebSocketProtocol

/// `sluice attach`: a terminal or a pipe becomes the other end of a connection of the gateway.
struct AttachCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "attach",
        abstract: "Talk on a connection that a running gateway keeps.",
        discussion: """
            As 'sluice connect', on a connection that is open already: in a pipe each line of standard input is a message, on a stream \
            bytes go through as they are; on a terminal lines are edited, and /help lists commands. At the end of standard input it \
            lets go once nothing has come for 1s (--wait); the connection stays. Ctrl-C lets go, too.

            EXAMPLES
              sluice attach 17
              echo hello | sluice attach 17 --wait 5s

            EXIT CODES are those of 'sluice connect', and of 'sluice show' before it is attached.
            """)

    @Argument(help: ArgumentHelp("The connection.", valueName: "ID"))
    var id: String

    @Flag(help: "Send binary messages, and write what comes without an end of line.")
    var binary = false

    @Flag(help: "On a stream, send lines with CRLF at their end.")
    var crlf = false

    @Option(
        help: ArgumentHelp(
            "After the end of standard input, how long nothing may come, or none. (default: 1s)", valueName: "duration")
    )
    var wait: String?

    @OptionGroup(title: "Gateway and output")
    var control: ControlOptions

    func run() async throws {
        try await self.control.run(reading: self.patience) { desk, patience in
            let path = ConnectionPath.one(self.id)
            let one = try await desk.session.send(ControlRequest(.get, path), for: Connection.self)
            guard one.relayed != true else {
                throw ControlFailure(
                    .conflict, "the data of \(self.id) is passed on, nobody can attach to it",
                    remedy: "'sluice tap \(self.id)' gives a copy")
            }
            let place = ConnectPlan.Attachment(session: desk.session, path: path, connection: one)
            let plan = try self.plan(place, patience: patience, desk)
            let group: LoopGroup
            do throws(SystemError) {
                group = try LoopGroup(count: 1)
            } catch {
                throw StartFailure.refusedBySystem("\(error)")
            }
            let code = await ConnectRun(plan: plan, loop: group.loops[0]).untilEnd()
            group.stop()
            throw code
        }
    }

    private func patience(_ reader: inout OptionReader) -> Duration?? {
        let span = ValueSyntax<Duration>.duration(.zero ... .seconds(86400)).orNone
        return .some((reader.value("--wait", self.wait, span) ?? .seconds(1)))
    }

    private func plan(
        _ place: ConnectPlan.Attachment, patience: Duration?, _ desk: ControlDesk
    ) throws(ControlFailure) -> ConnectPlan {
        let isStream = place.connection.kind == "stream"
        guard let url = try? EndpointURL(place.connection.url ?? "tcp://\(place.connection.peerAddress ?? "")") else {
            throw ControlFailure(.conflict, "the connection \(self.id) has no URL yet", remedy: "try again soon")
        }
        // Both kinds end as messages do: by letting go, while the connection stays.
        var terms = Conversation.Terms(carriesMessages: true)
        terms.patience = patience
        let carriage: ConnectPlan.Carriage =
            isStream ? (self.crlf ? .streamLines(end: "\r\n") : .bytes) : (self.binary ? .bytes : .textLines)
        return ConnectPlan(
            url: url, opening: .attachment(place), carriage: carriage, terms: terms, timeout: .seconds(20),
            messageLimit: 16 << 20, closeCode: .normalClosure, closeReason: "", printsJSON: desk.printsJSON,
            voice: .normal, trustsAnyone: false)
    }
}
