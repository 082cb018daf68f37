'use strict';
(function () {
  const form = document.getElementById('search');
  const field = document.getElementById('words');
  const told = document.getElementById('told');
  const items = Array.from(document.querySelectorAll('#entries > li'), function (element) {
    return { element: element, text: element.textContent.toLowerCase() };
  });

  // Every word has to be found somewhere in the entry.
  function search() {
    const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const item of items) {
      const found = words.every(function (word) { return item.text.includes(word); });
      item.element.hidden = !found;
      shown += found ? 1 : 0;
    }
    told.textContent = shown + ' of ' + items.length + ' shown';
  }

  // The search is in the address, so that it can be sent on.
  function fromAddress() {
    const asked = new URLSearchParams(location.hash.slice(1)).get('search');
    if (asked !== null) {
      field.value = asked;
    }
    search();
  }

  field.addEventListener('input', function () {
    history.replaceState(null, '', '#' + new URLSearchParams({ search: field.value }));
    search();
  });
  form.addEventListener('submit', function (event) { event.preventDefault(); });
  window.addEventListener('hashchange', fromAddress);
  form.hidden = false;
  fromAddress();
})();
