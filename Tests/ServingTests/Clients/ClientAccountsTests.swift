// ClientAccountsTests: what clients use of their budgets, without sockets and clocks.

import Core
import Testing

@testable import Serving

@Suite struct ClientAccountsTests {
  private let one = IPAddress.v4(0xc633_6407)
  private let other = IPAddress.v4(0xc633_6408)

  @Test func `a budget refills with time, up to its limit, and may be overdrawn by as much`() {
    let rule = TokenBucket.Rule(burst: 6, rate: 2)
    var bucket = TokenBucket(rule, at: 1_000)
    #expect(bucket.wait(for: 6, rule) == nil)
    bucket.take(5, rule)
    #expect(bucket.wait(for: 1, rule) == nil)
    #expect(bucket.wait(for: 4, rule) == 2)
    bucket.fill(rule, at: 2_500)
    #expect(bucket.wait(for: 4, rule) == nil)
    // It never holds more, and owes no more
    bucket.fill(rule, at: 1_000_000)
    #expect(bucket.wait(for: 7, rule) == 1)
    bucket.take(100, rule)
    #expect(bucket.wait(for: 0, rule) == 3)
    // A clock that goes back changes nothing
    bucket.fill(rule, at: 0)
    #expect(bucket.wait(for: 0, rule) == 3)
  }

  @Test func `a client may have as many waiting requests as its share`() {
    var accounts = ClientAccounts(ClientBudgets(activeRequests: 2))
    #expect(accounts.begin(one, at: 0) == nil)
    #expect(accounts.begin(one, at: 0) == nil)
    #expect(accounts.begin(one, at: 0) == .rateLimited(by: .activeRequests, retryAfter: 1))
    #expect(accounts.begin(other, at: 0) == nil)
    // When one ends
    accounts.end(one)
    #expect(accounts.begin(one, at: 0) == nil)
    #expect(accounts.begin(one, at: 0) != nil)
    // Clients without requests are not remembered
    accounts.end(one)
    accounts.end(one)
    accounts.end(other)
    #expect(accounts.clientCount == 0)
  }

  @Test func `a client whose imaging time is used up waits until it has some again`() {
    // Given 30 s a minute
    var accounts = ClientAccounts(
      ClientBudgets(imagingTime: TokenBucket.Rule(burst: 30, rate: 0.5)))
    accounts.charge(one, seconds: 29, at: 0)
    #expect(accounts.begin(one, at: 0) == nil)
    // When a long job overdraws it
    accounts.charge(one, seconds: 6, at: 0)
    // Then it waits for 5 s of imaging
    #expect(accounts.begin(one, at: 0) == .rateLimited(by: .imagingTime, retryAfter: 11))
    #expect(accounts.begin(one, at: 9_000) == .rateLimited(by: .imagingTime, retryAfter: 2))
    #expect(accounts.begin(other, at: 0) == nil)
    #expect(accounts.begin(one, at: 10_010) == nil)
    // However long the job, it waits for a minute at most
    accounts.charge(one, seconds: 1_000_000, at: 10_010)
    #expect(accounts.begin(one, at: 70_020) == nil)
  }

  @Test func `a client may send requests at its rate, and ten seconds' worth at once`() {
    var accounts = ClientAccounts(
      ClientBudgets(requests: TokenBucket.Rule(burst: 20, rate: 2)))
    for _ in 0..<20 { #expect(accounts.count(one, at: 0) == nil) }
    for _ in 0..<5 {
      #expect(accounts.count(one, at: 0) == .rateLimited(by: .requests, retryAfter: 1))
    }
    #expect(accounts.count(other, at: 0) == nil)
    #expect(accounts.count(one, at: 500) == nil)
    #expect(accounts.count(one, at: 500) != nil)
  }

  @Test func `without limits nothing is remembered`() {
    var accounts = ClientAccounts(ClientBudgets())
    for _ in 0..<1_000 { #expect(accounts.count(one, at: 0) == nil) }
    accounts.charge(one, seconds: 1_000, at: 0)
    #expect(accounts.clientCount == 0)
  }

  @Test func `the tables forget the clients that used their budgets least recently`() {
    let rule = TokenBucket.Rule(burst: 1, rate: 0.001)
    var accounts = ClientAccounts(ClientBudgets(imagingTime: rule, requests: rule))
    for number in 0..<(ClientAccounts.maximumClients + 10) {
      let client = IPAddress.v4(UInt32(number))
      #expect(accounts.count(client, at: 0) == nil)
      accounts.charge(client, seconds: 9, at: 0)
      // The first one stays in use.
      #expect(accounts.count(.v4(0), at: 0) != nil)
    }
    #expect(accounts.clientCount == ClientAccounts.maximumClients)
    #expect(accounts.count(.v4(0), at: 0) != nil)
    #expect(accounts.count(.v4(1), at: 0) == nil)
    #expect(accounts.begin(.v4(1), at: 0) == nil)
    #expect(accounts.begin(.v4(500), at: 0) != nil)
  }

  @Test func `the defaults limit waiting requests alone, to a quarter of all`() {
    var configuration = ServerConfiguration()
    #expect(configuration.clientBudgets == ClientBudgets(activeRequests: 512))
    configuration.maximumActiveRequestsPerClient = 3
    configuration.imagingTimePerClient = .seconds(30)
    configuration.requestsPerSecond = 5
    #expect(
      configuration.clientBudgets
        == ClientBudgets(
          activeRequests: 3, imagingTime: TokenBucket.Rule(burst: 30, rate: 0.5),
          requests: TokenBucket.Rule(burst: 50, rate: 5)))
  }
}
