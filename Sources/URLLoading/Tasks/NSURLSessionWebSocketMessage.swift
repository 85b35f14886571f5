import Foundation

/// One whole message, as an object. `URLSessionWebSocketTask.Message` is what tasks take and give.
open class NSURLSessionWebSocketMessage: NSObject, @unchecked Sendable {
    /// One of the two that is asked for; the other is `nil`.
    public let data: Data?
    public let string: String?

    public init(data: Data) {
        self.data = data
        self.string = nil
        super.init()
    }

    public init(string: String) {
        self.data = nil
        self.string = string
        super.init()
    }

    public convenience init(_ message: URLSessionWebSocketTask.Message) {
        switch message {
        case .data(let data): self.init(data: data)
        case .string(let text): self.init(string: text)
        }
    }

    open var type: NSURLSessionWebSocketMessageType { self.string == nil ? .data : .string }
}

extension URLSessionWebSocketTask.Message {
    public init(_ message: NSURLSessionWebSocketMessage) {
        self = message.string.map { .string($0) } ?? .data(message.data ?? Data())
    }
}
