/// Status of a listener.
package struct ListenerStatus: Codable, Sendable, Equatable {
    /// The bound address; for a configured port 0, with the port that the kernel assigned.
    package var address: String

    package init(address: String) {
        self.address = address
    }
}

/// Status of an upstream.
package struct UpstreamStatus: Codable, Sendable, Equatable {
    /// In the order of the configuration; empty while no route uses the upstream.
    package var endpoints: [EndpointStatus]

    package init(endpoints: [EndpointStatus]) {
        self.endpoints = endpoints
    }
}

/// Status of one endpoint of an upstream.
package struct EndpointStatus: Codable, Sendable, Equatable {
    package var url: String
    /// Connections being opened, and open ones.
    package var connections: Int
    /// Whether it is left out for a while after repeated failures.
    package var ejected: Bool

    package init(url: String, connections: Int, ejected: Bool) {
        self.url = url
        self.connections = connections
        self.ejected = ejected
    }
}

/// GET /v1/listeners, /v1/routes or /v1/upstreams: the entries of one list, in the order of the configuration.
///
/// An entry has the keys of the configuration file, and a read-only member `status`: `ListenerStatus` or
/// `UpstreamStatus`.
package struct ConfigurationEntries: Codable, Sendable, Equatable {
    package var items: [JSONValue]

    package init(items: [JSONValue]) {
        self.items = items
    }
}

/// Changes made to a configuration; with `?dryRun=true`, changes that would be made.
package struct ConfigurationDifference: Codable, Sendable, Equatable {
    /// Whether the changes were applied.
    package var applied: Bool
    package var changes: [ConfigurationDifferenceItem]

    package init(applied: Bool, changes: [ConfigurationDifferenceItem]) {
        self.applied = applied
        self.changes = changes
    }
}

/// One listener, route or upstream that differs, or the settings outside the lists.
package struct ConfigurationDifferenceItem: Codable, Sendable, Equatable {
    /// Path of the entry: `/v1/listeners/web`; `/v1/configuration` for settings outside the lists.
    package var resource: String
    /// `created`, `changed` or `deleted`.
    package var change: String
    package var members: [ConfigurationDifferenceMember]

    package init(resource: String, change: String, members: [ConfigurationDifferenceMember]) {
        self.resource = resource
        self.change = change
        self.members = members
    }
}

/// One value that differs. Values of credentials are hidden.
package struct ConfigurationDifferenceMember: Codable, Sendable, Equatable {
    /// JSON Pointer relative to the resource (RFC 6901); empty for the whole resource.
    package var pointer: String
    /// Missing if the value was not set.
    package var from: JSONValue?
    package var to: JSONValue?
    /// Whether the change takes effect only at the next start.
    package var needsRestart: Bool?

    package init(pointer: String, from: JSONValue? = nil, to: JSONValue? = nil, needsRestart: Bool? = nil) {
        self.pointer = pointer
        self.from = from
        self.to = to
        self.needsRestart = needsRestart
    }
}
