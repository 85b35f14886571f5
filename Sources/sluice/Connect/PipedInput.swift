import CommandLineText
import SessionTasks

/// Standard input that is no keyboard. What is read is sent before more is read.
struct PipedInput: ConnectInput {
    let session: ConnectSession
    let streams: StandardStreams

    func feed() async {
        var pieces = OutgoingPieces(plan: self.session.plan)
        do {
            while true {
                switch await self.streams.read() {
                case .bytes(let bytes): try await self.session.link.send(try pieces.pieces(bytes))
                case .end:
                    try await self.session.link.send(try pieces.lastPieces())
                    return self.session.happened(.inputEnded)
                case .failed(let reason):
                    throw ConnectFailure(.inputOrOutput, "standard input: \(reason)")
                }
            }
        } catch let failure as ConnectFailure {
            self.session.fail(failure)
        } catch {
            // The connection takes no more; how it ended is told by its own end.
            self.session.happened(.inputEnded)
        }
    }
}
