import HTTPTypes
import Hummingbird
import HummingbirdCore
import Synchronization

/// `/openapi.json`: what all the others are.
struct DocumentResource: Sendable {
    /// The document as it was written last. How callers say who they are can change.
    private final class Written: Sendable {
        let last = Mutex<(access: UInt64, bytes: [UInt8])?>(nil)
    }

    let context: ControlContext
    /// Everything but this.
    let others: [Operation]
    private let written = Written()

    init(context: ControlContext, others: [Operation]) {
        self.context = context
        self.others = others
    }

    var operations: [Operation] {
        [Operation("getDocument", .get, "/openapi.json", .none) { _ in .json(self.bytes) }]
    }

    private var bytes: [UInt8] {
        let number = self.context.access.number
        if let last = self.written.last.withLock({ $0 }), last.access == number { return last.bytes }
        let itself = Operation("getDocument", .get, "/openapi.json", .none) { _ in Response(status: .ok) }
        let document = OpenAPIDocument(self.others + [itself], documents: OperationDocuments.all, context: self.context)
        let bytes = document.json.bytes
        self.written.last.withLock { $0 = (number, bytes) }
        return bytes
    }
}
