import ArgumentParser
import ControlAPI
import GatewayCore
import StreamTransport
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

    @Option(
        help: ArgumentHelp("Trust these authorities, PEM, instead of the gateway's system's.", valueName: "file"),
        completion: .file())
    var ca: String?

    @Option(help: ArgumentHelp("For something to arrive or leave. (default: 60s)", valueName: "duration"))
    var idleTimeout: String?

    @Option(help: ArgumentHelp("For the whole. (default: 7d)", valueName: "duration"))
    var timeout: String?

    @OptionGroup
    var notes: NoteOptions

    @Flag(help: "Begin it, print its id, and leave it to itself.")
    var background = false

    func apply(to request: inout TransferRequest, _ reader: inout OptionReader) throws(UnusableFiles) {
        var headers: [String: String] = [:]
        for text in self.header {
            guard let field = reader.value("--header", text, ValueSyntax<HTTPField>.headerField) else { continue }
            let name = headers.keys.first { $0.lowercased() == field.name.lowercased() } ?? field.name
            headers[name] = headers[name].map { "\($0), \(field.value)" } ?? field.value
        }
        request.headers = headers.isEmpty ? nil : headers
        request.credential = self.credential
        request.insecure = self.insecure ? true : nil
        let span = ValueSyntax<Duration>.duration(.milliseconds(1) ... .seconds(366 * 86_400))
        request.idleTimeoutMs = reader.value("--idle-timeout", self.idleTimeout, span).map { $0 / .milliseconds(1) }
        request.timeoutMs = reader.value("--timeout", self.timeout, span).map { $0 / .milliseconds(1) }
        let notes = self.notes.patch(&reader)
        request.description = notes.description
        request.priority = notes.priority
        request.labels = notes.labels
        guard let ca else { return }
        do throws(SystemError) {
            request.authorities = String(decoding: try SystemFile.read(ca, limit: 512 << 10), as: UTF8.self)
        } catch {
            throw UnusableFiles("sluice: --ca: \(ca): \(error)")
        }
    }
}
