import HTTPTypes

/// What a cache knows of a stored response, its content aside (RFC 9111 §3).
package struct CacheEntry: Equatable, Sendable {
    package let status: Int
    package let fields: HTTPFields
    /// What the request said in the fields that `Vary` names.
    package let selection: VarySelection
    /// When the request went out and when the response came in, by the clock of this machine.
    package let requestTime: HTTPDate
    package let responseTime: HTTPDate

    /// - Parameters:
    ///   - fields: of the response, hop-by-hop ones included: they are left out here.
    ///   - requestFields: as they were sent.
    package init(
        status: Int, fields: HTTPFields, requestFields: HTTPFields, requestTime: HTTPDate, responseTime: HTTPDate
    ) {
        self.init(
            status: status, fields: HopByHop.removed(from: fields),
            selection: VarySelection(response: fields, request: requestFields), requestTime: requestTime,
            responseTime: responseTime)
    }

    /// Brings back an entry from where it was written to.
    package init(
        status: Int, fields: HTTPFields, selection: VarySelection, requestTime: HTTPDate, responseTime: HTTPDate
    ) {
        self.status = status
        self.fields = fields
        self.control = CacheControl(fields)
        self.selection = selection
        self.requestTime = requestTime
        self.responseTime = responseTime
    }

    package let control: CacheControl

    package var entityTag: EntityTag? { self.fields[values: .eTag].first.flatMap { EntityTag($0) } }

    /// As the server wrote it, which is how it must be sent back; `nil` where it is no date.
    package var lastModified: String? {
        let value = self.fields[values: .lastModified].first
        return value.flatMap { HTTPDate($0, now: self.responseTime) } == nil ? nil : value
    }

    /// When the response was made, or else when it came.
    var date: HTTPDate {
        self.fields[values: .date].first.flatMap { HTTPDate($0, now: self.responseTime) } ?? self.responseTime
    }
}
