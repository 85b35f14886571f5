/// Where a listener can be reached.
package struct ListenerStatus: Codable, Sendable, Equatable {
    /// With the port that the system picked, where it did.
    package var address: String

    package init(address: String) {
        self.address = address
    }
}

/// Status of an upstream.
package struct UpstreamStatus: Codable, Sendable, Equatable {
    /// In their order; none while no route leads to it.
    package var endpoints: [EndpointStatus]

    package init(endpoints: [EndpointStatus]) {
        self.endpoints = endpoints
    }
}

/// Status of one endpoint of an upstream.
package struct EndpointStatus: Codable, Sendable, Equatable {
    package var url: String
    /// Under way and open.
    package var connections: Int
    /// Left out for a while, since it kept failing.
    package var ejected: Bool

    package init(url: String, connections: Int, ejected: Bool) {
        self.url = url
        self.connections = connections
        self.ejected = ejected
    }
}

/// GET /v1/listeners, /v1/routes or /v1/upstreams: the entries of one list, in the order of the configuration.
///
/// An entry has the keys of the configuration's file, and a read-only member `status`: `ListenerStatus` or
/// `UpstreamStatus`.
package struct ConfigurationEntries: Codable, Sendable, Equatable {
    package var items: [JSONValue]

    package init(items: [JSONValue]) {
        self.items = items
    }
}

/// Changes made to a configuration; with `?dryRun=true`, changes that would be made.
package struct ConfigurationDifference: Codable, Sendable, Equatable {
    /// Whether it was carried out.
    package var applied: Bool
    package var changes: [ConfigurationDifferenceItem]

    package init(applied: Bool, changes: [ConfigurationDifferenceItem]) {
        self.applied = applied
        self.changes = changes
    }
}

/// One part of the configuration that is other than it was.
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

/// One value that is other than it was. Values of credentials are hidden.
package struct ConfigurationDifferenceMember: Codable, Sendable, Equatable {
    /// From the resource on (RFC 6901); empty for the whole of it.
    package var pointer: String
    /// Missing where nothing was written.
    package var from: JSONValue?
    package var to: JSONValue?
    /// It has no effect before the next start.
    package var needsRestart: Bool?

    package init(pointer: String, from: JSONValue? = nil, to: JSONValue? = nil, needsRestart: Bool? = nil) {
        self.pointer = pointer
        self.from = from
        self.to = to
        self.needsRestart = needsRestart
    }
}
