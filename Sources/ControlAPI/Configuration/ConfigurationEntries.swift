/// GET /v1/listeners, /v1/routes or /v1/upstreams: the entries of one list, in the order of the configuration.
///
/// An entry has the keys of the configuration's file, and a member `status` that is only told: `ListenerStatus` or
/// `UpstreamStatus`.
package struct ConfigurationEntries: Codable, Sendable, Equatable {
    package var items: [JSONValue]

    package init(items: [JSONValue]) {
        self.items = items
    }
}
