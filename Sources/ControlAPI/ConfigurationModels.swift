/// Status of a listener.
package struct ListenerStatus: ControlModel {
    @Member("The bound address; for a configured port 0, with the port that the kernel assigned.")
    package var address = ""

    package init() {}
}

/// Status of an upstream.
package struct UpstreamStatus: ControlModel {
    @Member("In the order of the configuration; empty while no route uses the upstream.")
    package var endpoints: [EndpointStatus] = []

    package init() {}
}

/// Status of one endpoint of an upstream.
package struct EndpointStatus: ControlModel {
    @Member package var url = ""
    @Member("Connections being opened, and open ones.") package var connections = 0
    @Member("Whether it is left out for a while after repeated failures.") package var ejected = false

    package init() {}
}

/// GET /v1/listeners, /v1/routes or /v1/upstreams: the entries of one list, in the order of the configuration.
///
/// An entry has the keys of the configuration file, and a read-only member `status`: `ListenerStatus` or
/// `UpstreamStatus`.
package struct ConfigurationEntries: ControlModel {
    @Member package var items: [JSONValue] = []

    package init() {}
}

/// Changes made to a configuration; with `?dryRun=true`, changes that would be made.
package struct ConfigurationDifference: ControlModel {
    @Member("Whether the changes were applied.") package var applied = false
    @Member package var changes: [ConfigurationDifferenceItem] = []

    package init() {}
}

/// One listener, route or upstream that differs, or the settings outside the lists.
package struct ConfigurationDifferenceItem: ControlModel {
    @Member("Path of the entry: `/v1/listeners/web`; `/v1/configuration` for settings outside the lists.")
    package var resource = ""
    @Member(.words(["created", "changed", "deleted"])) package var change = ""
    @Member package var members: [ConfigurationDifferenceMember] = []

    package init() {}
}

/// One value that differs. Values of credentials are hidden.
package struct ConfigurationDifferenceMember: ControlModel {
    @Member("JSON Pointer relative to the resource (RFC 6901); empty for the whole resource.") package var pointer = ""
    @Member("Missing if the value was not set.") package var from: JSONValue?
    @Member package var to: JSONValue?
    @Member("Whether the change takes effect only at the next start.") package var needsRestart: Bool?

    package init() {}
}
