import ArgumentParser
import ControlAPI
import GatewayCore
import WebSocketProtocol

/// What `get` and `put` have in common.
struct TransferOptions: ParsableArguments {
    @Option(
        name: [.customShort("H"), .long], parsing: .unconditionalSingleValue,
        help: ArgumentHelp("Header field of the request. Repeat for several.", valueName: "Name: value"))
    var header: [String] = []

    @Option(help: ArgumentHelp("Entry of control.transfers.credentials to sign in with.", valueName: "name"))
    var credential: String?

    @Flag(name: [.customShort("k"), .long], help: "Take any certificate of the server. Only for tests.")
    var insecure = false

    @Option(help: ArgumentHelp("For something to arrive or leave. (default: 60s)", valueName: "duration"))
    var idleTimeout: String?

    @OptionGroup
    var notes: NoteOptions

    @Flag(help: "Begin it, print its id, and leave it to itself.")
    var background = false

    func apply(to request: inout TransferRequest, _ reader: inout OptionReader) {
        var headers: [String: String] = [:]
        for text in self.header {
            guard let field = reader.value("--header", text, ValueSyntax<HTTPField>.headerField) else { continue }
            headers[field.name] = headers[field.name].map { "\($0), \(field.value)" } ?? field.value
        }
        request.headers = headers.isEmpty ? nil : headers
        request.credential = self.credential
        request.insecure = self.insecure ? true : nil
        request.idleTimeoutMs = OpenOptions.milliseconds("--idle-timeout", self.idleTimeout, &reader)
        let notes = self.notes.patch(&reader)
        request.description = notes.description
        request.priority = notes.priority
        request.labels = notes.labels
    }
}
