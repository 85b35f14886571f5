import Foundation
import SessionTasks
import StreamTransport
import TLSEngine

extension StreamConnection {
    /// From any thread: TLS from here on.
    func startSecure() {
        self.life.loop.execute {
            guard let stream = self.stream, let task = self.life.task, let url = self.url else { return }
            switch self.life.core.streamContext() {
            case .failure(let failure):
                self.fail(
                    LoadFailure.error(
                        .secureConnectionFailed, url: nil, cause: failure, text: failure.description))
            case .success(let context):
                let settings = self.secureSettings(context, at: url, for: task, timeout: self.securingTimeout)
                stream.startSecure(settings) { self.secured($0) }
            }
        }
    }

    private func secured(_ result: Result<Void, TaskFailure>) {
        guard case .failure(let failure) = result else { return }
        // Asked for twice: it is secure.
        if case .usage = failure { return }
        self.fail(self.life.error(failure))
    }

    /// From any thread: the connection leaves the session as two streams, once all that was asked for is done.
    func capture() {
        self.life.loop.execute {
            guard let stream = self.stream, self.life.stage != .over else { return }
            self.isCapturing = true
            stream.captureStreams { result in
                self.isCapturing = false
                switch result {
                case .success(let captured): self.handOver(captured)
                case .failure(let failure): self.fail(self.life.error(failure))
                }
            }
        }
    }

    private func handOver(_ captured: CapturedStreams) {
        let streams = CapturedStreamPair(captured)
        let session = self.life.session
        guard let task = self.life.task as? URLSessionStreamTask else { return }
        self.life.tell(.capturedStreams) {
            $0.stream?.urlSession(
                session, streamTask: task, didBecome: streams.input, outputStream: streams.output)
        }
        _ = self.life.leave()
        self.life.core.endSilently(task, session: session)
    }
}
