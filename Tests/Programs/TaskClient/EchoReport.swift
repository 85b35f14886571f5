import SessionTasks
import WebSocketProtocol

/// The end of an echoing connection, as reported by its task.
struct EchoReport: Encodable {
    let opened: Bool
    let clean: Bool
    /// Of the server's Close frame.
    let code: UInt16?
    let reason: String?
    /// The task's property.
    let closeCode: UInt16?
    let closeReason: String?
    let failure: String?
    /// Of the answer to the opening handshake.
    let status: Int?
    let extensions: String?
    let subprotocol: String?
    let body: String?
    let echoed: Int

    init(_ task: WebSocketTask, end: WebSocketEnd, echoed: Int) {
        self.opened = task.record.openedAt != nil
        self.clean = end.isClean
        self.code = end.code?.rawValue
        self.reason = end.code == nil ? nil : String(decoding: end.reason, as: UTF8.self)
        self.closeCode = task.closeCode?.rawValue
        self.closeReason = task.closeReason.map { String(decoding: $0, as: UTF8.self) }
        self.failure = end.failure?.description
        self.status = task.response?.status
        self.extensions = task.response?.fields["Sec-WebSocket-Extensions"]
        self.subprotocol = task.subprotocol
        self.body = task.responseBody.isEmpty ? nil : String(decoding: task.responseBody, as: UTF8.self)
        self.echoed = echoed
    }
}
