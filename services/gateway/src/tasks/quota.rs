//! What one tenant may have of this gateway: new tasks a minute, queued and running tasks, open
//! tasks, clients that watch. Tasks are counted on the bus, the rest here.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use autoact_trajectory::Tenant;

use crate::config::{QuotaConfig, TenantQuotaConfig};

/// Beyond so many tenants, those that have not asked for a minute are forgotten.
const MOST_KEPT: usize = 1024;
/// What a rate counts in.
const MINUTE: Duration = Duration::from_secs(60);

/// What a tenant may have; `None`: no bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Quota {
    pub(crate) tasks_per_minute: Option<u32>,
    pub(crate) tasks: Option<u64>,
    pub(crate) open: Option<u64>,
    pub(crate) watchers: Option<usize>,
}

/// What tenants may have, and what they use of it here.
#[derive(Debug, Default)]
pub(crate) struct Quotas {
    everybody: Quota,
    tenants: BTreeMap<Tenant, Quota>,
    used: Arc<Mutex<HashMap<Tenant, Used>>>,
}

#[derive(Debug, Default)]
struct Used {
    rate: Option<Rate>,
    watchers: usize,
    /// Submissions between the look at the queue and the entry into it.
    entering: u64,
}

/// New tasks that may still come, as of a moment.
#[derive(Debug, Clone, Copy)]
struct Rate {
    left: f64,
    at: Instant,
}

/// One of what a tenant may have; given back when dropped.
#[derive(Debug)]
pub(crate) struct Place {
    used: Arc<Mutex<HashMap<Tenant, Used>>>,
    tenant: Tenant,
    give_back: fn(&mut Used),
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(used) = used.get_mut(&self.tenant) {
            (self.give_back)(used);
        }
    }
}

impl Quotas {
    /// `shared` is what a tenant may have at most where the settings name no bound.
    pub(crate) fn new(config: &QuotaConfig, shared: Quota) -> Quotas {
        let everybody = Quota {
            tasks_per_minute: bound(config.tasks_per_minute).or(shared.tasks_per_minute),
            tasks: bound(config.tasks).or(shared.tasks),
            open: bound(config.open).or(shared.open),
            watchers: bound(config.watchers).or(shared.watchers),
        };
        let own = |quota: &TenantQuotaConfig| Quota {
            tasks_per_minute: quota.tasks_per_minute.map_or(everybody.tasks_per_minute, bound),
            tasks: quota.tasks.map_or(everybody.tasks, bound),
            open: quota.open.map_or(everybody.open, bound),
            watchers: quota.watchers.map_or(everybody.watchers, bound),
        };
        let tenants = config.tenants.iter().filter_map(|(tenant, quota)| Some((tenant.parse().ok()?, own(quota)))).collect();
        Quotas { everybody, tenants, used: Arc::default() }
    }

    /// What a tenant may have.
    pub(crate) fn of(&self, tenant: &Tenant) -> Quota {
        self.tenants.get(tenant).copied().unwrap_or(self.everybody)
    }

    /// Counts a new task. If too many came: how long until one may come, and how many may a minute.
    pub(crate) fn new_task(&self, tenant: &Tenant, now: Instant) -> Result<(), (Duration, u32)> {
        let Some(most) = self.of(tenant).tasks_per_minute else { return Ok(()) };
        let per_second = f64::from(most) / MINUTE.as_secs_f64();
        self.with(tenant, now, |used| {
            let rate = used.rate.get_or_insert(Rate { left: f64::from(most), at: now });
            let since = now.saturating_duration_since(rate.at).as_secs_f64();
            *rate = Rate { left: (rate.left + since * per_second).min(f64::from(most)), at: now };
            if rate.left < 1.0 {
                return Err((Duration::from_secs_f64((1.0 - rate.left) / per_second), most));
            }
            rate.left -= 1.0;
            Ok(())
        })
    }

    /// A place among those who watch. Otherwise how many may.
    pub(crate) fn watch(&self, tenant: &Tenant) -> Result<Place, usize> {
        let most = self.of(tenant).watchers.unwrap_or(usize::MAX);
        self.with(tenant, Instant::now(), |used| {
            if used.watchers >= most {
                return Err(most);
            }
            used.watchers += 1;
            Ok(())
        })?;
        Ok(self.place(tenant, |used| used.watchers -= 1))
    }

    /// Counts a submission until it is in the queue, where the bus counts it; and how many were on
    /// their way before.
    pub(crate) fn enter(&self, tenant: &Tenant) -> (Place, u64) {
        let before = self.with(tenant, Instant::now(), |used| {
            used.entering += 1;
            used.entering - 1
        });
        (self.place(tenant, |used| used.entering -= 1), before)
    }

    fn place(&self, tenant: &Tenant, give_back: fn(&mut Used)) -> Place {
        Place { used: self.used.clone(), tenant: tenant.clone(), give_back }
    }

    fn with<T>(&self, tenant: &Tenant, now: Instant, act: impl FnOnce(&mut Used) -> T) -> T {
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        if used.len() >= MOST_KEPT && !used.contains_key(tenant) {
            let recent = |rate: &Rate| now.saturating_duration_since(rate.at) < MINUTE;
            used.retain(|_, used| used.watchers > 0 || used.entering > 0 || used.rate.as_ref().is_some_and(recent));
        }
        act(used.entry(tenant.clone()).or_default())
    }
}

/// A setting as a bound.
fn bound<T: PartialEq + Default>(number: T) -> Option<T> {
    (number != T::default()).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tenant(name: &str) -> Tenant {
        name.parse().unwrap()
    }

    #[test]
    fn a_minutes_tasks_may_come_at_once_and_then_one_after_another() {
        let quotas = Quotas::new(&QuotaConfig { tasks_per_minute: 2, ..QuotaConfig::default() }, Quota::default());
        let (ops, start) = (tenant("ops"), Instant::now());
        let at = |seconds: u64| quotas.new_task(&ops, start + Duration::from_secs(seconds));
        assert_eq!((at(0), at(0)), (Ok(()), Ok(())));
        let (wait, most) = at(0).unwrap_err();
        assert!(wait > Duration::from_secs(29) && wait <= Duration::from_secs(30) && most == 2, "{wait:?}");
        assert!(quotas.new_task(&tenant("dev"), start).is_ok(), "tenants share nothing");
        assert!(at(29).is_err());
        assert_eq!((at(31), at(600), at(600)), (Ok(()), Ok(()), Ok(())));
        assert!(at(600).is_err(), "what was not used is not kept for ever");
        // a clock that stands still or goes back is no gift
        assert!(at(10).is_err());
    }

    #[test]
    fn a_tenant_has_its_own_bounds_and_otherwise_those_of_all() {
        let own = TenantQuotaConfig { tasks: Some(0), open: Some(8), watchers: Some(1), tasks_per_minute: None };
        let config = QuotaConfig { tasks: 7, tenants: [("ops".into(), own)].into(), ..QuotaConfig::default() };
        let quotas = Quotas::new(&config, Quota { watchers: Some(3), ..Quota::default() });
        assert_eq!(quotas.of(&tenant("dev")), Quota { tasks_per_minute: None, tasks: Some(7), open: None, watchers: Some(3) });
        assert_eq!(quotas.of(&tenant("ops")), Quota { tasks_per_minute: None, tasks: None, open: Some(8), watchers: Some(1) });
        let place = quotas.watch(&tenant("ops")).unwrap();
        assert_eq!(quotas.watch(&tenant("ops")).unwrap_err(), 1);
        drop(place);
        assert!(quotas.watch(&tenant("ops")).is_ok());
        let (first, before) = quotas.enter(&tenant("ops"));
        assert_eq!((before, quotas.enter(&tenant("ops")).1), (0, 1));
        drop(first);
        assert_eq!(quotas.enter(&tenant("ops")).1, 0);
    }

    #[test]
    fn many_tenants_do_not_stay_in_memory() {
        let quotas = Quotas::new(&QuotaConfig { tasks_per_minute: 2, ..QuotaConfig::default() }, Quota::default());
        let start = Instant::now();
        for number in 0..10_000_u64 {
            let _ = quotas.new_task(&tenant(&format!("t{number}")), start + Duration::from_secs(number));
        }
        assert!(quotas.used.lock().unwrap().len() <= MOST_KEPT);
    }
}
