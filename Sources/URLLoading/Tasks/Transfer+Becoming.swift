import Foundation
import HTTPTransport
import Synchronization

extension Transfer {
    /// The content of a data task goes to a file from here on.
    func becomeDownload(_ response: URLResponse) {
        guard let old = self.task as? URLSessionDataTask else { return }
        let facts = old.facts.withLock { $0 }
        let new = URLSessionDownloadTask(facts, of: self.session)
        new.use(self)
        self.become(new)
        // The new task has it.
        old.facts.withLock { $0.delegate = nil }
        let session = self.session
        self.core.line.tell(self.faces, .becameDownload) { face in
            face.data?.urlSession(session, dataTask: old, didBecome: new)
        }
        self.beginFile(response)
        if self.finishWaits { self.finished() }
    }

    /// The connection becomes a stream task's, once it has left HTTP.
    func becomeStream() {
        self.becomesStream = true
        guard (self.task.response as? HTTPURLResponse)?.statusCode != 101 else { return self.settleUpgrade() }
        self.failed(
            LoadFailure.error(
                .unsupportedURL, url: self.task.currentRequest?.url,
                text: "Only a connection that the server upgraded (101) can become a stream."))
    }

    /// The server switched protocols.
    func upgraded(_ connection: UpgradedConnection) {
        guard self.stage == .loading else { return connection.close() }
        self.upgradedConnection = connection
        if !self.awaitsAnswer { self.settleUpgrade() }
    }

    /// Gives the connection to whom the answer names, once both are there.
    func settleUpgrade() {
        guard let connection = self.upgradedConnection else { return }
        self.upgradedConnection = nil
        guard self.becomesStream, let old = self.task as? URLSessionDataTask else {
            connection.close()
            return self.finished()
        }
        self.stop()
        self.session.becomeStream(old, connection)
    }

    func noteLocal(_ response: URLResponse, bytes: Int) {
        let now = ContinuousClock.now
        guard let request = self.task.currentRequest else { return }
        self.note(
            TransactionRecord(
                request: request, response: response,
                source: .other(LocalTimings(fetchStart: now, responseStart: now, responseEnd: now)),
                decodedBytes: Int64(bytes)))
    }
}
