/// Where a route leads.
package enum RouteTarget: Sendable, Equatable {
    /// A named upstream.
    case upstream(String)
    /// One address, with an upstream's defaults.
    case url(EndpointURL)
    /// Messages (or bytes) come back as they came.
    case echo
    /// Every message goes to everyone else in the room that the path's `{room}` names; without such a parameter the
    /// room has the route's name.
    case chat
}
