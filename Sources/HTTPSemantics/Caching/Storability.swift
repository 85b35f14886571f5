import HTTPTypes

/// Whether a response may be kept in a private cache (RFC 9111 §3).
package enum Storability: Equatable, Sendable {
    case storable
    case refused(Reason)

    package enum Reason: Equatable, Sendable {
        /// Only answers to GET are kept.
        case method
        /// An interim answer, one to a condition, a part, or one that nothing says may be kept.
        case status
        /// The request or the response forbade it.
        case noStore
        /// It is an answer to no other request.
        case varies
    }

    /// - Parameter requestFields: as they were sent.
    package static func judge(
        method: HTTPRequest.Method, requestFields: HTTPFields, status: Int, fields: HTTPFields
    ) -> Self {
        guard method == .get, !requestFields.contains(.range) else { return .refused(.method) }
        let control = CacheControl(fields)
        guard !CacheControl(requestFields).noStore else { return .refused(.noStore) }
        // Who understands the status may overlook a no-store that is there for others (RFC 9111 §5.2.2.3).
        let isUnderstood = HeuristicStatus.contains(status) && status != 206
        if control.mustUnderstand {
            guard isUnderstood else { return .refused(.status) }
        } else if control.noStore {
            return .refused(.noStore)
        }
        guard (200...599).contains(status), status != 206, status != 304 else { return .refused(.status) }
        let isExplicit =
            control.isPublic || control.isPrivate || control.maxAge != nil || fields.contains(.expires)
        guard isExplicit || isUnderstood else { return .refused(.status) }
        guard VarySelection(response: fields, request: requestFields).values != nil else { return .refused(.varies) }
        return .storable
    }
}
