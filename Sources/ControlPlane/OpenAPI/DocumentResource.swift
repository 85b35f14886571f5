import HTTPTypes
import Hummingbird
import HummingbirdCore

/// `/openapi.json`: what all the others are.
struct DocumentResource: Sendable {
    let context: ControlContext
    /// Everything but this.
    let others: [Operation]

    var operations: [Operation] {
        let operation = Operation("getDocument", .get, "/openapi.json", .none) { _ in Response(status: .ok) }
        let document = OpenAPIDocument(
            self.others + [operation], documents: OperationDocuments.all, context: self.context)
        let bytes = document.json.bytes
        return [Operation("getDocument", .get, "/openapi.json", .none) { _ in .json(bytes) }]
    }
}
