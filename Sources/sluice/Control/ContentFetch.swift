import CommandLineText
import ControlClient
import Foundation

/// Brings what a transfer received from the gateway to here.
struct ContentFetch {
    let desk: ControlDesk
    let id: String

    /// - Parameter path: of a file, which appears once it is whole; `nil`: standard output.
    func write(to path: String?) async throws {
        var request = ControlRequest(.get, TransferText.path(self.id) + "/content")
        request.patience = .seconds(60)
        let (_, body) = try await self.desk.session.open(request, accept: "*/*")
        guard let path else {
            var text = StreamedText()
            while let bytes = try await body.next() {
                // A terminal must not be steered by the peer.
                let safe = Terminal.showsOutput ? Array(TerminalText.safe(text.text(bytes)).utf8) : bytes
                try await self.desk.write(safe)
            }
            return
        }
        let part = path + ".part"
        do {
            try Data().write(to: URL(fileURLWithPath: part))
            let handle = try FileHandle(forWritingTo: URL(fileURLWithPath: part))
            defer { try? handle.close() }
            while let bytes = try await body.next() { try handle.write(contentsOf: bytes) }
            try handle.synchronize()
            guard rename(part, path) == 0 else { throw CocoaError(.fileWriteUnknown) }
        } catch let failure as ControlFailure {
            throw failure
        } catch {
            throw ConnectFailure(.inputOrOutput, "\(path): cannot be written: \(error.localizedDescription)")
        }
    }
}
