import CommandLineText
import ControlAPI
import ControlClient
import GatewayCore
import SessionTasks
import WebSocketProtocol

/// What `connect` was asked to do, checked.
struct ConnectPlan: Sendable {
    /// How bytes of standard input become what is sent, and what comes becomes standard output.
    enum Carriage: Sendable, Equatable {
        /// A text message for each line.
        case textLines
        /// A binary message for each line.
        case binaryLines
        /// Binary messages on a WebSocket, just the bytes on a stream.
        case bytes
        /// Lines of a stream, sent with this at their end.
        case streamLines(end: String)
    }

    enum Opening: Sendable {
        case messages(ClientOpening, WebSocketOptions)
        case stream(OpeningTarget, StartTLS?)
        /// A connection that a gateway keeps.
        case attachment(Attachment)
    }

    struct Attachment: Sendable {
        let session: ControlSession
        let id: String
        let connection: Connection
        /// The end of our input ends our direction of the stream.
        let endsDirection: Bool

        var isStream: Bool { self.connection.kind == "stream" }
    }

    /// TLS in the middle of a stream.
    struct StartTLS: Sendable {
        let mode: StartTLSMode
        let settings: SecureSettings
    }

    enum Voice: Sendable, Equatable {
        case quiet, normal, verbose
    }

    let url: EndpointURL
    let opening: Opening
    let carriage: Carriage
    let terms: Conversation.Terms
    let timeout: Duration
    /// Longest message or line, in bytes.
    let messageLimit: Int
    let closeCode: CloseCode
    let closeReason: String
    let printsJSON: Bool
    let voice: Voice
    /// `-k`, and there is TLS.
    let trustsAnyone: Bool

    var speaksWebSocket: Bool {
        if case .attachment(let place) = self.opening { return !place.isStream }
        return self.url.scheme.speaksWebSocket
    }
}

extension ConnectPlan {
    /// Whether what comes is written in lines.
    var writesLines: Bool {
        switch self.carriage {
        case .textLines, .binaryLines, .streamLines: true
        case .bytes: false
        }
    }
}
