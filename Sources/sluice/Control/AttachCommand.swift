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
            As 'sluice connect', on a connection that is open already: what it receives is written to standard output, and what is \
            read from standard input is sent. Of a WebSocket each line is a message; bytes of a stream go through as they are. On a \
            terminal lines are edited, and /help lists commands.

            At the end of standard input a stream is closed for writing (--keep leaves it open), and what the peer still sends is \
            written until its own end; a WebSocket is let go once nothing has come for 1s. --wait is another time for either. What \
            was let go goes on in the gateway: 'sluice close' ends it. Ctrl-C lets go, too.

            One at a time can be attached; others take a copy with 'sluice tap'. A token needs the scopes read and operate.

            EXAMPLES
              id=$(sluice open tcp://mail.example:25)
              sluice attach "$id"

              echo hello | sluice attach 17 --wait 5s
              tar c files | sluice attach 18 > answer

            EXIT CODES
              0    ended in order, or let go
              64   wrong usage
              65   standard input cannot be sent: no UTF-8, or a line beyond 16MiB
              66   there is no such connection, or it is over
              69   no control plane answers there
              70   a fault of sluice or of the gateway
              74   standard input or output failed
              75   not now: try again
              76   ended out of order; or what answers is no control plane
              77   not allowed: no token, or one without the scope
              78   a certificate, token or other file cannot be used
              79   TLS with the control plane failed
              80   the peer closed with another code than 1000 and 1001, which is shown
              81   its data is passed on, or somebody else is attached
              130  interrupted twice
            """)

    @Argument(help: ArgumentHelp("The connection.", valueName: "ID"))
    var id: String

    @Flag(help: "On a WebSocket, send binary messages, and write what comes without an end of line.")
    var binary = false

    @Flag(help: "On a stream, send lines with CRLF at their end.")
    var crlf = false

    @Option(
        help: ArgumentHelp(
            "After the end of standard input, how long nothing may come, or none. (default: 1s; none for a stream)",
            valueName: "duration"))
    var wait: String?

    @Flag(help: "At the end of standard input, leave a stream open for writing, and let go as of a WebSocket.")
    var keep = false

    @OptionGroup(title: "Gateway and output")
    var control: ControlOptions

    private struct Wishes {
        /// The inner one: `none`; the outer one: nothing was said.
        var patience: Duration??
    }

    func run() async throws {
        try await self.control.run(reading: self.wishes) { desk, wishes in
            let one = try await desk.session.send(
                ControlRequest(.get, ConnectionPath.one(self.id)), for: Connection.self)
            try self.check(one)
            let place = ConnectPlan.Attachment(
                session: desk.session, id: self.id, connection: one, endsDirection: !self.keep)
            let plan = try self.plan(place, wishes, desk)
            let group: LoopGroup
            do throws(SystemError) {
                group = try LoopGroup(count: 1)
            } catch {
                throw StartFailure.refusedBySystem("\(error)")
            }
            let code = try await ConnectRun(plan: plan, loop: group.loops[0]).untilEnd()
            group.stop()
            throw code
        }
    }

    private func wishes(_ reader: inout OptionReader) -> Wishes? {
        let span = ValueSyntax<Duration>.duration(.zero ... .seconds(86400)).orNone
        return Wishes(patience: reader.value("--wait", self.wait, span))
    }

    private func check(_ one: Connection) throws(ControlFailure) {
        guard one.relayed != true else {
            throw ControlFailure(
                .conflict, "the data of \(self.id) is passed on, nobody can attach to it",
                remedy: "'sluice tap \(self.id)' gives a copy")
        }
        guard one.kind == "stream" || !self.crlf && !self.keep else {
            throw ControlFailure(
                .wrongRequest, "\(self.id) is a WebSocket: \(self.crlf ? "--crlf" : "--keep") is for streams",
                remedy: "leave it out")
        }
    }

    private func plan(
        _ place: ConnectPlan.Attachment, _ wishes: Wishes, _ desk: ControlDesk
    ) throws(ControlFailure) -> ConnectPlan {
        let standIn = place.isStream ? "tcp://gateway.invalid:1" : "ws://gateway.invalid/"
        guard let url = try? EndpointURL(place.connection.url ?? standIn) else {
            throw ControlFailure(.nonsense, "the connection \(self.id) has no URL: \(place.connection.url ?? "")")
        }
        var terms = Conversation.Terms(carriesMessages: !place.isStream || self.keep)
        terms.staysWithoutUs = true
        terms.patience = wishes.patience ?? (terms.carriesMessages ? .seconds(1) : nil)
        let carriage: ConnectPlan.Carriage =
            place.isStream
            ? (self.crlf ? .streamLines(end: "\r\n") : .bytes) : (self.binary ? .bytes : .textLines)
        return ConnectPlan(
            url: url, opening: .attachment(place), carriage: carriage, terms: terms, timeout: .seconds(20),
            messageLimit: 16 << 20, closeCode: .normalClosure, closeReason: "", printsJSON: desk.printsJSON,
            voice: .normal, trustsAnyone: false)
    }
}
