import SessionTasks
import StreamTransport

extension TaskRecord {
    /// What the record knows of an open connection.
    func facts(url: String) -> ConnectionFacts {
        self.read { details in
            ConnectionFacts(
                url: url, localAddress: details.localAddress?.description,
                peerAddress: details.peerAddress?.description,
                tls: details.tls)
        }
    }
}
